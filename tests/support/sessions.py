"""Settings of Spark for tables of a handful of rows, whose time goes into planning and generated code.

Expressions are interpreted, plans are made once, and a shuffle is one task. What rows come out does not depend on any of it.
"""

from typing import Any, Final

from karat.lake.session import PROFILES

_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
FEW_ROWS: Final[dict[str, Any]] = {
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": False,
    "spark.sql.shuffle.partitions": 1,
    "spark.default.parallelism": 1,
}
"""For a process that ends after a run or two."""
FEW_ROWS_LONG: Final[dict[str, Any]] = {
    **FEW_ROWS,
    # a process that lives for many minutes: the better compiler pays
    _JAVA_OPTIONS: PROFILES["small"][_JAVA_OPTIONS].replace("-XX:TieredStopAtLevel=1 ", ""),
}
SMALL: Final[dict[str, Any]] = {"master": "local[2]", "profile": "small", "conf": FEW_ROWS}
"""`spark` of a project's `karat.yml`."""
