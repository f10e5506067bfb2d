"""A run in a session that somebody else has built, with settings of its own: `python -m tests.support.strange_session FOLDER`."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from karat.lake.jars import ensure_jars

OWN = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
}


def main() -> None:
    builder = SparkSession.builder.master("local[1]").appName("somebody else's").config("spark.jars", ",".join(map(str, ensure_jars())))
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    for name, value in OWN.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    report = Project.open(Path(sys.argv[1]), spark=session).run()
    assert report.ok, report
    assert {name: session.conf.get(name) for name in OWN} == OWN, "a session that was handed in is left as it is"
    session.stop()


if __name__ == "__main__":
    main()
