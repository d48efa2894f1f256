"""Small mistakes in a C++ file: what each would be, and where. tree-sitter finds the places.

A mutant changes one operator, constant, condition, statement or pair of arguments. What a compiler decides alone
(includes, macros, static_assert, template parameters) is left as it is.
"""
import dataclasses

import tree_sitter
import tree_sitter_cpp

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))

# Which operator stands for which: the nearest that a tired programmer would write.
OPERATORS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "*": "/", "/": "*",
    "%": "/", "&&": "||", "||": "&&", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=",
    "&=": "|=", "|=": "&=", "++": "--", "--": "++",
}
# Nodes that no mutant is made in.
OUTSIDE = {
    "static_assert_declaration", "preproc_include", "preproc_def", "preproc_function_def", "preproc_call",
    "template_parameter_list", "template_argument_list", "requires_clause", "noexcept", "attribute_declaration",
    "alignas_qualifier", "decltype", "string_literal", "raw_string_literal", "char_literal", "friend_declaration",
    "using_declaration", "alias_declaration", "operator_name", "destructor_name",
}
# What does nothing in a build without assertions, or ever.
NOTHING = ("assert(", "static_cast<void>(")
# Nodes whose operators are arithmetic or comparisons.
EXPRESSIONS = {"binary_expression", "assignment_expression", "update_expression"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """`text[begin:end]` of the file becomes `new`."""

    file: str
    line: int
    begin: int
    end: int
    new: str
    what: str

    @property
    def name(self):
        return f"{self.file}:{self.line}: {self.what}"

    def applied(self, text):
        return text[: self.begin] + self.new.encode() + text[self.end:]


def mutants(file, text):
    """All mutants of a file, whose bytes are `text`, in the order of their places."""
    found = []

    def add(node, new, what, end=None):
        found.append(Mutant(file, node.start_point[0] + 1, node.start_byte, (end or node).end_byte, new, what))

    def source(node):
        return text[node.start_byte: node.end_byte].decode()

    def brief(node):
        words = " ".join(source(node).split())
        return words if len(words) <= 60 else words[:57] + "..."

    def visit(node):
        if node.type in OUTSIDE or node.type == "ERROR" or source(node).startswith(NOTHING):
            return
        if node.type in EXPRESSIONS:
            for child in node.children:
                if not child.is_named and source(child) in OPERATORS:
                    new = OPERATORS[source(child)]
                    add(child, new, f"{source(child)} becomes {new} in '{brief(node)}'")
        elif node.type == "unary_expression" and source(node.children[0]) == "!":
            add(node, source(node.children[1]), f"'!' is left out of '{brief(node)}'")
        elif node.type == "number_literal":
            whole = source(node).rstrip("uUlLzZ").replace("'", "")
            if whole.isdigit():
                new = source(node).replace(source(node)[: len(source(node).rstrip("uUlLzZ"))], str(int(whole) + 1))
                add(node, new, f"{source(node)} becomes {new}")
        elif node.type in ("true", "false"):
            new = "false" if node.type == "true" else "true"
            add(node, new, f"{node.type} becomes {new}")
        elif node.type in ("if_statement", "while_statement"):
            is_constexpr = any(child.type == "constexpr" for child in node.children)
            condition = node.child_by_field_name("condition")
            inner = condition.child_by_field_name("value") if condition is not None else None
            if inner is not None and not is_constexpr and condition.named_child_count == 1:
                values = ["false"] if node.type == "while_statement" else ["true", "false"]
                for value in values:
                    add(inner, value, f"the condition '{brief(inner)}' becomes {value}")
        elif node.type == "expression_statement" and node.named_child_count == 1:
            if node.named_children[0].type in ("call_expression", "assignment_expression", "update_expression"):
                add(node, ";", f"'{brief(node)}' is left out")
        elif node.type == "argument_list":
            arguments = [child for child in node.named_children if child.type != "comment"]
            for left, right in zip(arguments, arguments[1:]):
                # Orders of memory are what models and sanitizers judge.
                if source(left) != source(right) and "std::memory_order" not in (source(left) + source(right)):
                    between = text[left.end_byte: right.start_byte].decode()
                    what = f"'{brief(left)}' and '{brief(right)}' are swapped"
                    add(left, source(right) + between + source(left), what, end=right)
        for child in node.children:
            visit(child)

    visit(PARSER.parse(text).root_node)
    return sorted(found, key=lambda mutant: (mutant.begin, mutant.end, mutant.new))
