package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// person is a row of the file to import.
type person struct{ email, name, role string }

func newUserImport(getenv func(string) string) *cobra.Command {
	var byProvider bool
	cmd := actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "import FILE.csv",
		Short: "Make the accounts of a file, and print a link for each to sign in with once",
		Long: "Make the accounts of a file, whose first line names its columns: email, and if you like name and role (member or owner).\n" +
			"Prints `email,link` for each account that it makes, to hand on. Accounts that are there already stay as they are, so the\n" +
			"command can be run again.\n\n" +
			"With --providers no links are made: people come in by their identity provider, which knows them by the same address.",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		people, err := readPeople(args[0])
		if err != nil {
			return err
		}
		makeLinks := !byProvider
		return importPeople(cmd, c, people, makeLinks)
	})
	cmd.Flags().BoolVar(&byProvider, "providers", false, "make no links: people sign in by an identity provider")
	return cmd
}

// importPeople makes the accounts that do not exist. With makeLinks it prints the links of new ones.
func importPeople(cmd *cobra.Command, c *client, people []person, makeLinks bool) error {
	made, out := 0, csv.NewWriter(cmd.OutOrStdout())
	for _, p := range people {
		var u account.UserInfo
		err := c.call(cmd.Context(), "POST", "/api/users", map[string]any{"email": p.email, "name": p.name, "role": p.role}, &u)
		if refusal := (*apiError)(nil); errors.As(err, &refusal) && refusal.Code == "ALREADY_EXISTS" {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: is there already, and stays as it is\n", p.email)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.email, err)
		}
		made++
		if !makeLinks {
			continue
		}

		link, err := makeLink(cmd.Context(), c, u.ID)
		if err != nil {
			return fmt.Errorf("%s: %w; the account is made: `shoal user reset` prints a link", p.email, err)
		}
		// Print each link at once, so that a later failure does not lose it.
		if err := out.Write([]string{p.email, link.Link}); err != nil {
			return err
		}
		out.Flush()
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s made\n", catalog.Counted(made, "account", "accounts"))
	return out.Error()
}

// readPeople reads all rows of a file. It returns one error with all mistakes, so that a file with a
// mistake makes no account.
func readPeople(path string) ([]person, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows := csv.NewReader(file)
	rows.TrimLeadingSpace = true

	heading, err := rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, name := range heading {
		// Spreadsheets begin a file with a byte order mark.
		heading[i] = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if !slices.Contains([]string{"email", "name", "role"}, heading[i]) {
			return nil, fmt.Errorf("%s: line 1: unknown column %q: want email, name, role", path, name)
		}
	}
	if !slices.Contains(heading, "email") {
		return nil, fmt.Errorf("%s: line 1: want the names of the columns, email among them", path)
	}

	var people []person
	var errs []error
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return people, errors.Join(errs...)
		}
		if err != nil {
			return nil, errors.Join(append(errs, fmt.Errorf("%s: %w", path, err))...)
		}
		line, _ := rows.FieldPos(0)
		p, err := parsePerson(heading, row)
		if slices.ContainsFunc(people, func(other person) bool { return strings.EqualFold(other.email, p.email) }) {
			err = fmt.Errorf("%s is there twice", p.email)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: line %d: %w", path, line, err))
		}
		people = append(people, p)
	}
}

// parsePerson parses a row, whose columns heading names. The role is member if the row has none.
func parsePerson(heading, row []string) (p person, err error) {
	for i, value := range row {
		value = strings.TrimSpace(value)
		switch heading[i] {
		case "email":
			p.email = value
		case "name":
			p.name = value
		case "role":
			p.role = strings.ToLower(value)
		}
	}
	if p.role == "" {
		p.role = "member"
	}
	if a, err := mail.ParseAddress(p.email); err != nil || a.Address != p.email {
		return p, fmt.Errorf("%q is no e-mail address", p.email)
	}
	if p.role != "member" && p.role != "owner" {
		return p, fmt.Errorf("role %q: want member or owner", p.role)
	}
	return p, nil
}
