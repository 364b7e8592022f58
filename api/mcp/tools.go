package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node"
)

// Parameters that several tools have.
var (
	repoParam    = param{name: "repo", kind: "string", required: true, about: "full repository name, as github.com/acme/app; an unambiguous ending is enough"}
	anyRepoParam = param{name: "repo", kind: "string", about: "full repository name, as github.com/acme/app; all repositories if left out"}
	refParam     = param{name: "ref", kind: "string", about: "branch, tag or commit; the default branch if left out"}
	pageParam    = param{name: "page", kind: "integer", min: 1, usual: 1, about: "page, from 1"}
)

// perPage is the parameter of how many entries a page has.
func perPage(usual int) param {
	return param{name: "perPage", kind: "integer", min: 1, max: 100, usual: usual, about: "entries on a page"}
}

// table lists the tools in the order that clients show them.
func table(n Tools) []tool {
	return []tool{
		grepTool(n), globTool(n), readFileTool(n), listTreeTool(n), listReposTool(n),
		definitionsTool(n), referencesTool(n),
		listCommitsTool(n), listBranchesTool(n), getDiffTool(n), listModelsTool(n),
	}
}

func grepTool(n Tools) tool {
	return tool{
		name: "grep", title: "Search file contents",
		about: "Finds lines that match a regular expression (RE2, case-sensitive; start with (?i) to ignore case) in one repository or in all. Use it first to locate code; then read_file. Comes back ranked, grouped by file, as `line: text`. groupByRepo gives counts per repository instead: use it to learn which repositories matter.",
		params: []param{
			{name: "pattern", kind: "string", required: true, about: "regular expression; escape ( ) [ ] { } . * + ? | to find them as they are"},
			anyRepoParam,
			{name: "path", kind: "string", about: "directory to search below, from the root, as src/net"},
			{name: "include", kind: "string", about: "glob of file paths, as **/*.go or src/**/*.{ts,tsx}; relative to path"},
			refParam,
			{name: "limit", kind: "integer", min: 1, max: 10000, usual: 100, about: "most files"},
			{name: "groupByRepo", kind: "boolean", usual: false, about: "counts per repository instead of lines"},
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			req := node.GrepRequest{
				Pattern: a.text("pattern"), Path: a.text("path"), Include: a.text("include"), Repo: a.text("repo"),
				Ref: a.text("ref"), Limit: a.number("limit"), GroupByRepo: a.flag("groupByRepo"),
			}
			if req.GroupByRepo && !contains(a.given, "limit") {
				req.Limit = 10000
			}
			r, err := n.Grep(ctx, v, req)
			if err != nil {
				return "", err
			}
			if req.GroupByRepo {
				return grepCounts(a, r), nil
			}
			return grepText(a, r, req.Limit), nil
		},
	}
}

func globTool(n Tools) tool {
	return tool{
		name: "glob", title: "Find files by path",
		about: "Finds files whose path matches a glob, such as **/*.proto or src/**/{test,spec}/*.ts, in one repository or in all. Use it when you know a file's name but not its directory. Comes back as paths by repository; a directory with several is named once, its files indented below.",
		params: []param{
			{name: "pattern", kind: "string", required: true, about: "glob of the whole path: ** crosses directories, * and ? do not, {a,b} is either; **/name finds name anywhere"},
			anyRepoParam,
			{name: "path", kind: "string", about: "directory to look below; pattern is then relative to it"},
			refParam,
			{name: "limit", kind: "integer", min: 1, max: 10000, usual: 100, about: "most files"},
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			req := node.GlobRequest{Pattern: a.text("pattern"), Path: a.text("path"), Repo: a.text("repo"), Ref: a.text("ref"), Limit: a.number("limit")}
			r, err := n.Glob(ctx, v, req)
			if err != nil {
				return "", err
			}
			return globText(a, r, req.Limit), nil
		},
	}
}

func readFileTool(n Tools) tool {
	return tool{
		name: "read_file", title: "Read a file",
		about: "Reads up to 500 lines of a file, as `line: text`. Use it after grep or glob: give offset to read around a line. The last line of the result says how to read on.",
		params: []param{
			repoParam,
			{name: "path", kind: "string", required: true, about: "path of the file from the root"},
			refParam,
			{name: "offset", kind: "integer", min: 1, about: "first line, from 1"},
			{name: "limit", kind: "integer", min: 1, max: 500, clamp: true, usual: 500, about: "most lines"},
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.ReadFile(ctx, v, node.ReadFileRequest{
				Repo: a.text("repo"), Path: a.text("path"), Ref: a.text("ref"), Offset: a.number("offset"), Limit: a.number("limit"),
			})
			if err != nil {
				return "", err
			}
			return fileText(a, r), nil
		},
	}
}

func listTreeTool(n Tools) tool {
	return tool{
		name: "list_tree", title: "List a directory",
		about: "Lists files and directories of a repository as an indented tree, directories first and ending in a slash. Use it to learn how a repository is laid out; glob is better for finding one file.",
		params: []param{
			repoParam,
			{name: "path", kind: "string", about: "directory from the root; the root if left out"},
			refParam,
			{name: "depth", kind: "integer", min: 1, max: 10, usual: 1, about: "levels below path"},
			{name: "includeFiles", kind: "boolean", usual: true, about: "list files"},
			{name: "includeDirectories", kind: "boolean", usual: true, about: "list directories"},
			{name: "maxEntries", kind: "integer", min: 1, max: 10000, usual: 1000, about: "most entries"},
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			if !a.flag("includeFiles") && !a.flag("includeDirectories") {
				return "", &node.Error{Kind: node.ErrInvalid, Message: "includeFiles and includeDirectories are both false: nothing is left to list. Set one of them to true."}
			}
			r, err := n.ListTree(ctx, v, node.ListTreeRequest{
				Repo: a.text("repo"), Path: a.text("path"), Ref: a.text("ref"), Depth: a.number("depth"),
				NoFiles: !a.flag("includeFiles"), NoDirectories: !a.flag("includeDirectories"), MaxEntries: a.number("maxEntries"),
			})
			if err != nil {
				return "", err
			}
			return treeText(a, r), nil
		},
	}
}

func listReposTool(n Tools) tool {
	return tool{
		name: "list_repos", title: "List repositories",
		about: "Lists the repositories that can be searched, with default branch and last push. Use it to find the full name of a repository, which other tools take as repo.",
		params: []param{
			{name: "query", kind: "string", about: "part of the name, upper or lower case"},
			pageParam, perPage(30),
			{name: "sort", kind: "string", words: []string{"name", "pushed"}, usual: "name", about: "by name or by last push"},
			{name: "direction", kind: "string", words: []string{"asc", "desc"}, usual: "asc", about: "ascending or descending"},
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.ListRepos(ctx, v, node.ReposRequest{
				Query: a.text("query"), Page: a.number("page"), PerPage: a.number("perPage"),
				Sort: a.text("sort"), Desc: a.text("direction") == "desc",
			})
			if err != nil {
				return "", err
			}
			return reposText(a, r), nil
		},
	}
}

func symbolParams() []param {
	return []param{
		{name: "symbol", kind: "string", required: true, about: "exact name, as NewServer; no package or class before it"},
		repoParam,
	}
}

func definitionsTool(n Tools) tool {
	return tool{
		name: "find_symbol_definitions", title: "Find definitions",
		about:  "Finds where a function, type, variable or other symbol is defined in a repository. Better than grep for that. Comes back as `line [kind]: text` by file.",
		params: symbolParams(),
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.Definitions(ctx, v, node.SymbolRequest{Symbol: a.text("symbol"), Repo: a.text("repo")})
			if err != nil {
				return "", err
			}
			return symbolText(a, r, "definition"), nil
		},
	}
}

func referencesTool(n Tools) tool {
	return tool{
		name: "find_symbol_references", title: "Find references",
		about:  "Finds where a symbol is used in a repository, without the places that define it. Code comes before comments and strings, which are marked `line~: text`. Comes back as `line: text` by file.",
		params: symbolParams(),
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.References(ctx, v, node.SymbolRequest{Symbol: a.text("symbol"), Repo: a.text("repo")})
			if err != nil {
				return "", err
			}
			return symbolText(a, r, "reference"), nil
		},
	}
}

func listCommitsTool(n Tools) tool {
	return tool{
		name: "list_commits", title: "List commits",
		about: "Lists commits of a repository, newest first, as `hash date author: subject`. Use it to learn what changed, when and by whom; filter by path, author, time or words of the message. get_diff shows a change.",
		params: []param{
			repoParam,
			{name: "path", kind: "string", about: "only commits that changed this file or directory"},
			{name: "query", kind: "string", about: "words of the message, upper or lower case"},
			{name: "author", kind: "string", about: "part of the author's name or e-mail, upper or lower case"},
			{name: "since", kind: "string", about: "newer than this: 2024-05-01 or `30 days ago`"},
			{name: "until", kind: "string", about: "older than this, in the same forms"},
			refParam, pageParam, perPage(50),
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.ListCommits(ctx, v, node.CommitsRequest{
				Repo: a.text("repo"), Ref: a.text("ref"), Path: a.text("path"), Query: a.text("query"), Author: a.text("author"),
				Since: a.text("since"), Until: a.text("until"), Page: a.number("page"), PerPage: a.number("perPage"),
			})
			if err != nil {
				return "", err
			}
			return commitsText(a, r), nil
		},
	}
}

func listBranchesTool(n Tools) tool {
	return tool{
		name: "list_branches", title: "List branches",
		about: "Lists branches of a repository, newest first, with their commit, and says which is the default and which are indexed (searching those is fastest).",
		params: []param{
			repoParam,
			{name: "query", kind: "string", about: "part of the name, upper or lower case"},
			pageParam, perPage(50),
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.ListBranches(ctx, v, node.RefsRequest{Repo: a.text("repo"), Query: a.text("query"), Page: a.number("page"), PerPage: a.number("perPage")})
			if err != nil {
				return "", err
			}
			return branchesText(a, r), nil
		},
	}
}

func getDiffTool(n Tools) tool {
	return tool{
		name: "get_diff", title: "Compare two revisions",
		about: "Shows what differs between two revisions of a repository (two-dot: the trees are compared), as a unified diff below a line for each file (M, A, D or R and its path). A large difference is summed up first: narrow it with path. For one commit give base as <commit>~1 and head as <commit>.",
		params: []param{
			repoParam,
			{name: "base", kind: "string", required: true, about: "branch, tag or commit to compare from"},
			{name: "head", kind: "string", required: true, about: "branch, tag or commit to compare to"},
			{name: "path", kind: "string", about: "only this file or directory"},
		},
		run: func(ctx context.Context, v node.Viewer, a *args) (string, error) {
			r, err := n.GetDiff(ctx, v, node.DiffRequest{Repo: a.text("repo"), Base: a.text("base"), Head: a.text("head"), Path: a.text("path")})
			if err != nil {
				return "", err
			}
			return diffText(a, r), nil
		},
	}
}

func listModelsTool(n Tools) tool {
	return tool{
		name: "list_language_models", title: "List language models",
		about: "Lists the language models configured on this instance, for the languageModel argument of ask_codebase.",
		run: func(ctx context.Context, v node.Viewer, _ *args) (string, error) {
			models, err := n.Models(ctx, v)
			if err != nil {
				return "", err
			}
			if len(models) == 0 {
				return "No language model is configured.\nComplete.", nil
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n", count(len(models), "language model"))
			for _, m := range models {
				fmt.Fprintf(&b, "provider=%s model=%s", m.Provider, m.Model)
				if m.DisplayName != "" {
					fmt.Fprintf(&b, " (%s)", m.DisplayName)
				}
				b.WriteByte('\n')
			}
			b.WriteString(complete)
			return b.String(), nil
		},
	}
}
