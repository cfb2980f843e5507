"""What is decided over the real fleet: the next steps of each task, by nothing but request and results."""

from __future__ import annotations

import re

from fleet_model import DONE, Draft, Told


def note(told: Told, name: str, text: str) -> Draft:
    return told.next(f"Create the entity {name} in the knowledge graph with the observation: {text.strip()}")


def folder_of(told: Told, name: str) -> str:
    return f"{told.box}/files/{name}"


def newest(told: Told) -> Draft:
    if not told.results:
        return told.next(f"List the directory {folder_of(told, 'notes')}")
    if told.of("^Create"):
        return DONE
    if texts := told.of("^Read"):
        return note(told, "newest", texts[0])
    name = max(told.taken(r"\d{4}-\d\d-\d\d\.txt"))
    return told.next(f"Read the text file {folder_of(told, 'notes')}/{name}")


def inbox(told: Told) -> Draft:
    insert = "Execute an INSERT query on the SQLite database, a row into inbox with: {item}"
    listed = {"id": "1", "text": f"List the directory {folder_of(told, 'inbox')}"}
    return DONE if told.results else {"steps": [listed, {"id": "2", "text": insert, "for_each": "1"}], "open": False}


def orders(told: Told) -> Draft:
    folder = folder_of(told, "orders")
    if told.of("^Execute"):
        return DONE
    if texts := told.of("^Read"):
        large = [found for text in texts for found in re.findall(r"amount (\d+)", text)[:1] if int(found) > 100]
        row = "Execute an INSERT query on the SQLite database, a row into orders with: {}"
        return told.next(*(row.format(amount) for amount in dict.fromkeys(large))) if large else DONE
    if told.results:
        return {}
    steps = told.next(f"List the directory {folder}", f"Read the text file {folder}: {{item}}")["steps"]
    return {"steps": [steps[0], {**steps[1], "for_each": "1"}]}


def debts(told: Told) -> Draft:
    if not told.results:
        return told.next("List all tables in the SQLite database")
    table = told.taken(r"debts_\w+")[0]
    if told.of("^Create"):
        return DONE
    if rows := told.of("^Execute"):
        return note(told, "debtor", rows[0])
    if told.of("^Get"):
        column = told.taken(r"who_\w+")[0]
        sql = f"SELECT {column} FROM {table} ORDER BY owed DESC LIMIT 1"
        return told.next(f"Execute on the SQLite database the SELECT query: {sql}")
    return told.next(f"Get the schema of the table {table} in the SQLite database")


def saved(told: Told) -> Draft:
    repo = f"{told.box}/repo"
    if not told.results:
        return told.next(f"Show the working tree status of the git repository {repo}")
    if told.of("^Create|^Record"):
        return DONE
    if told.of("^Add"):
        return told.next(f"Record the staged changes to the git repository {repo} in a commit with the message: Save")
    if changed := told.taken(r"modified:\s+(\S+)"):
        return told.next(*(f"Add the file {name} to the staging area of the git repository {repo}" for name in changed))
    assert told.taken("working tree clean")
    return note(told, "repository", "clean")


def copied(told: Told) -> Draft:
    path = f"{told.box}/out/report.txt"
    if not told.results:
        return told.next(f"Read the text file {folder_of(told, 'report.txt')}")
    text = told.of("^Read")[0].strip()
    if told.of("^With"):
        return DONE
    if told.of("^Write"):
        return {**told.next(f"With the line editor, insert into the text file {path} the line: {text}"), "drop": ["2"]}
    return told.next(f"Write the file {path} with the content: {text}")


def price(told: Told) -> Draft:
    if not told.results:
        url = re.findall(r"http\S+\.txt", told.request)[0]
        return told.next(f"Fetch the URL {url}")
    if told.of("^Create"):
        return DONE
    if texts := told.of("^Read"):
        return note(told, "price", texts[0])
    return {**told.next(f"Read the text file {folder_of(told, 'price.txt')}"), "drop": ["1"]}


def bolt(told: Told) -> Draft:
    if not told.results:
        sql = "SELECT price FROM prices WHERE name = 'bolt'"
        return told.next(f"Execute on the SQLite database the SELECT query: {sql}")
    if told.of("^Write"):
        return DONE
    if costs := told.taken(r"costs (\w+)"):
        return told.next(f"Write the file {folder_of(told, 'bolt.txt')} with the content: {costs[0]}")
    return told.next("Search for nodes in the knowledge graph by the query: bolt")


def marathon(told: Told) -> Draft:
    length = re.findall(r"[\d.]+(?= miles)", told.request)[0]
    steps = told.next(
        f"Convert the length {length} mile to kilometer",
        "Create the entity marathon in the knowledge graph with the result of step 1 as its observation",
    )["steps"]
    return DONE if told.results else {"steps": [steps[0], {**steps[1], "depends_on": ["1"]}], "open": False}


def trail(told: Told) -> Draft:
    if told.of("^Create"):
        return DONE
    if found := told.taken(r"treasure \w+"):
        return note(told, "treasure", found[-1])
    name = ["start.txt", *told.taken(r"next: (\w+\.txt)")][-1]
    return told.next(f"Read the text file {folder_of(told, 'trail')}/{name}")


def commits(told: Told) -> Draft:
    repo = f"{told.box}/repo"
    if not told.results:
        return told.next(f"Show the commit logs of the git repository {repo}")
    if told.of("^Create"):
        return DONE
    if told.of("^Show the contents"):
        return note(told, "price", told.taken(r"\+(price \w+)")[0])
    commit = re.findall(r"Commit: '?(\w{40})(?:(?!Commit:).)*?Change the price", told.results[0][1], re.DOTALL)[-1]
    return told.next(f"Show the contents of the commit {commit} of the git repository {repo}")


def shelves(told: Told) -> Draft:
    folder = folder_of(told, "shelf")
    row = "Execute an INSERT query on the SQLite database, a row into shelf with: {item}"
    texts = (f"List the directory {folder}", f"List the directory {folder}: {{item}}", row)
    one, two, three = told.next(*texts)["steps"]
    return (
        DONE if told.results else {"steps": [one, {**two, "for_each": "1"}, {**three, "for_each": "2"}], "open": False}
    )


def budget(told: Told) -> Draft:
    if told.of("^Create"):
        return DONE
    if texts := told.of("^Read"):
        return note(told, "budget", texts[0])
    if paths := told.taken(r"/\S+budget-\w+\.txt"):
        return told.next(f"Read the text file {paths[0]}")
    return told.next(
        f"Search for files that match budget* in the directory {folder_of(told, 'abc'[len(told.results)])}"
    )
