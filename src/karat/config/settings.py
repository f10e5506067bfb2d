"""`karat.yml`: where the lake is, how Spark runs, where state is kept, whom to tell."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from karat.config.names import checked_identifier
from karat.config.setting import Port, Secret, Setting, Text


class SparkSettings(Setting):
    """How the Spark session is made."""

    master: Text = Field("local[*]", description="A Spark master, or `provided`: the session that is there, with its own settings.")
    profile: Literal["small", "throughput"] = Field(
        "throughput", description="`throughput` suits every size; `small` starts faster and is for batches of thousands of rows."
    )
    conf: dict[str, str | int | float | bool | Secret] = Field(
        default_factory=dict, description="Spark settings, passed on unchanged; a key or a password is a reference: {env: NAME}."
    )


class StateSettings(Setting):
    """Where the run ledger, the events and the mirror of watermarks are kept."""

    url: Text = Field("sqlite:///.karat/state.db", description="Any SQLAlchemy URL without a password in it.")
    password: Secret | None = Field(None, description="The password that belongs into the URL.")


class RuntimeSettings(Setting):
    """How a run behaves."""

    max_parallel_tables: Annotated[int, Field(ge=1, le=64)] = Field(2, description="How many tables are worked on at once.")
    heartbeat_seconds: Annotated[int, Field(ge=1)] = Field(30, description="How often a long run says that it is alive.")
    fail_fast: bool = Field(False, description="Start nothing new after the first failure.")


When = Literal["always", "failure"]


class EmailNotice(Setting):
    """A mail at the end of a run."""

    host: Text
    port: Port = 25
    sender: Text
    to: Annotated[list[Text], Field(min_length=1)]
    user: Text | None = None
    password: Secret | None = None
    tls: Literal["none", "starttls", "tls"] = "starttls"
    when: When = Field("always", description="`failure` stays silent when all is well.")


class WebhookNotice(Setting):
    """A JSON POST at the end of a run."""

    url: Text | Secret = Field(description="The address; a reference when it is itself a secret.")
    headers: dict[str, Text | Secret] = Field(default_factory=dict)
    when: When = "always"


class NotifySettings(Setting):
    """Whom to tell when a run ends."""

    email: EmailNotice | None = None
    webhook: WebhookNotice | None = None
    command: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="A program that gets the run's summary as JSON on its standard input."
    )


class JdbcConnection(Setting):
    """A database reached by JDBC."""

    kind: Literal["jdbc"]
    dialect: Literal["postgresql", "mysql", "mariadb", "singlestore", "oracle", "sqlserver"]
    host: Text
    port: Port
    database: Text
    user: Text
    password: Secret
    options: dict[str, str | Secret] = Field(default_factory=dict, description="Driver options, handed on as they are.")


class KafkaConnection(Setting):
    """A Kafka cluster."""

    kind: Literal["kafka"]
    bootstrap_servers: Text
    options: dict[str, str | Secret] = Field(default_factory=dict)


Connection = Annotated[JdbcConnection | KafkaConnection, Field(discriminator="kind")]


class ProjectSettings(Setting):
    """The whole of `karat.yml`."""

    project: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] = Field(description="The project's name.")
    lake: Text = Field("./lake", description="The lake's root: a folder, or any Hadoop filesystem URI.")
    catalog: Text | None = Field(None, description="A Spark catalog; tables are then catalog.schema.table.")
    spark: SparkSettings = Field(default_factory=SparkSettings)
    state: StateSettings = Field(default_factory=StateSettings)
    runtime: RuntimeSettings = Field(default_factory=RuntimeSettings)
    notify: NotifySettings | None = None
    connections: dict[str, Connection] = Field(default_factory=dict)
    vars: dict[str, str | int | float | bool] = Field(default_factory=dict, description="Values for `${var:name}`; `--var` overrides them.")

    @field_validator("catalog")
    @classmethod
    def _catalog_is_an_identifier(cls, catalog: str | None) -> str | None:
        return catalog if catalog is None else checked_identifier(catalog)
