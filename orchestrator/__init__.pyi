from .arag import create_arag as create_arag
from .asking import create_ask_app as create_ask_app
from .middleware import CallsheetTools as CallsheetTools
from .settings import Settings as Settings
from .supervisor import create_retriever_app as create_retriever_app, create_supervisor as create_supervisor
