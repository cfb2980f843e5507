from .apps.arag_graph import ReaderPrompts as ReaderPrompts, create_arag as create_arag
from .apps.ask_graph import create_ask_app as create_ask_app
from .apps.tool_middleware import CallsheetTools as CallsheetTools
from .run.settings import (
    AskSettings as AskSettings,
    ReaderSettings as ReaderSettings,
    RetrieverSettings as RetrieverSettings,
    Settings as Settings,
)
from .supervisor import create_retriever_app as create_retriever_app, create_supervisor as create_supervisor
