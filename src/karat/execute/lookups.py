"""What PySpark asks the JVM anew for every column, asked once.

To build one column PySpark looks up the class of all functions, then the function, and only then calls it: three round trips
instead of one, and a batch builds a thousand columns. Neither answer can change while the JVM lives.
"""

from typing import Any, Final

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession

_ASKED_FOR: Final = ("org.apache.spark.sql.functions", "functions", "PythonUtils", "PythonSQLUtils")
"""Under these names, among others, PySpark looks for classes; one it no longer uses is remembered in vain and does no harm."""


class _Remembered(JavaClass):  # type: ignore[misc]  # py4j is untyped
    """A class of the JVM that looks up a method of its own once."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the class has)
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember_lookups(session: SparkSession) -> None:
    """Let PySpark find what it always looks for; a session without a JVM of its own has nothing to look up."""
    jvm = getattr(session.sparkContext, "_jvm", None)
    for name in _ASKED_FOR if jvm is not None else ():
        found = getattr(jvm, name)
        if type(found) is JavaClass:
            vars(jvm)[name] = _Remembered(found._fqn, found._gateway_client)  # noqa: SLF001  (py4j has no other way)
