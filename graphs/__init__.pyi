from .capabilities.taxonomy import (
    Capability as Capability,
    Taxonomy as Taxonomy,
    default_taxonomy as default_taxonomy,
    read_taxonomy as read_taxonomy,
    shipped_taxonomy as shipped_taxonomy,
)
from .catalog.formats.manifests import (
    Problem as Problem,
    agent_from_listing as agent_from_listing,
    dump as dump,
)
from .catalog.formats.server_config import ServerConfig as ServerConfig
from .catalog.model import (
    Agent as Agent,
    Catalog as Catalog,
    Dependency as Dependency,
    DependencyKind as DependencyKind,
    Parameter as Parameter,
    Provenance as Provenance,
    Skill as Skill,
    Tool as Tool,
)
from .errors import (
    CallsheetError as CallsheetError,
    CatalogError as CatalogError,
    Finding as Finding,
    PlanError as PlanError,
    RequestError as RequestError,
    SettingsError as SettingsError,
    Severity as Severity,
    TrustError as TrustError,
    UnknownNameError as UnknownNameError,
)
from .knowledge_graph import (
    KnowledgeGraph as KnowledgeGraph,
    NodeKind as NodeKind,
    Reached as Reached,
    Relation as Relation,
    dependency_counts as dependency_counts,
    dependency_edges as dependency_edges,
    detailed_graph as detailed_graph,
    evidence as evidence,
    kind_of as kind_of,
    knowledge_graph as knowledge_graph,
    needed_by as needed_by,
    needs as needs,
    owner as owner,
    required_paths as required_paths,
    strongest as strongest,
    used_by as used_by,
    walk as walk,
)
from .sources.loaded import CatalogSource as CatalogSource, Loaded as Loaded, SourceCatalog as SourceCatalog
from .sources.loading import load as load
from .text.hidden import Hidden as Hidden, escaped as escaped, hidden_in as hidden_in, shown as shown
from .text.json_schema import shown_schema as shown_schema
from .text.messages import counted as counted
from .text.unicode import strings_in as strings_in
from .text.words import split_name as split_name
from .trust.changes import (
    describe_change as describe_change,
    diff_of as diff_of,
    findings_of as findings_of,
    problems_of as problems_of,
)
from .trust.consent import (
    Agreements as Agreements,
    Start as Start,
    check_agreed as check_agreed,
    starts_of as starts_of,
)
from .trust.open_calls import CallLedger as CallLedger, OpenCall as OpenCall
from .trust.pins import (
    Admitted as Admitted,
    Change as Change,
    Listed as Listed,
    PinBook as PinBook,
    digest as digest,
    digests as digests,
)
from .trust.policy import (
    Grants as Grants,
    Group as Group,
    Policy as Policy,
    Rule as Rule,
    User as User,
    View as View,
    hints as hints,
    policy_of as policy_of,
    read_policy as read_policy,
)
