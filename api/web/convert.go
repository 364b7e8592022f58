package web

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"path"
	"strings"

	"github.com/shoalsearch/shoal/api/web/markdown"
)

// Limits of converted files.
const (
	maxConverted = 4 << 20 // bytes of a notebook or a table
	maxTableRows = 1000
)

// converters has, by extension, functions that convert a file to Markdown. A function returns nil for
// an invalid file.
var converters = map[string]func([]byte) []byte{
	".ipynb": notebook,
	".csv":   func(text []byte) []byte { return table(text, ',') },
	".tsv":   func(text []byte) []byte { return table(text, '\t') },
}

// isDrawn reports, by a file's name, whether its page shows it as a document unless asked otherwise.
func isDrawn(file string) bool {
	return markdown.Named(file) || converters[strings.ToLower(path.Ext(file))] != nil
}

// markdownOf returns a file as Markdown; nil if it is shown as source.
func markdownOf(language, file string, text []byte) []byte {
	if markdown.Is(language) {
		return text
	}
	convert := converters[strings.ToLower(path.Ext(file))]
	if convert == nil || len(text) > maxConverted {
		return nil
	}
	return convert(text)
}

// lineList is text that a notebook stores as a string or as a list of lines.
type lineList string

// UnmarshalJSON implements json.Unmarshaler.
func (l *lineList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = lineList(one)
		return nil
	}
	var lines []string
	if err := json.Unmarshal(b, &lines); err != nil {
		return err
	}
	*l = lineList(strings.Join(lines, ""))
	return nil
}

// notebook converts a Jupyter notebook to Markdown. Text stays text, and code and output become code
// blocks. Of pictures and tables it takes their plain text.
func notebook(text []byte) []byte {
	var book struct {
		Cells []struct {
			Type    string   `json:"cell_type"`
			Source  lineList `json:"source"`
			Outputs []struct {
				Text lineList                   `json:"text"`
				Data map[string]json.RawMessage `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
		Metadata struct {
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
		} `json:"metadata"`
	}
	if json.Unmarshal(text, &book) != nil || len(book.Cells) == 0 {
		return nil
	}

	var out bytes.Buffer
	for _, cell := range book.Cells {
		if cell.Type != "code" {
			out.WriteString(string(cell.Source) + "\n\n")
			continue
		}
		fence(&out, book.Metadata.Language.Name, string(cell.Source))
		for _, o := range cell.Outputs {
			shown := o.Text
			if plain, ok := o.Data["text/plain"]; ok && json.Unmarshal(plain, &shown) != nil {
				continue
			}
			if shown != "" {
				fence(&out, "", string(shown))
			}
		}
	}
	return out.Bytes()
}

// fence writes code as a block of Markdown, between fences that the code does not contain.
func fence(out *bytes.Buffer, language, code string) {
	mark := "```"
	for strings.Contains(code, mark) {
		mark += "`"
	}
	// Leave out a language whose name would break the fence's line.
	if strings.ContainsFunc(language, func(r rune) bool { return r <= ' ' || r == '`' }) {
		language = ""
	}
	out.WriteString(mark + language + "\n" + strings.TrimRight(code, "\n") + "\n" + mark + "\n\n")
}

// table converts separated values to a table of Markdown, whose first row is the head. It returns nil
// for a single column, and stops after maxTableRows or at an error.
func table(text []byte, comma rune) []byte {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true

	var out bytes.Buffer
	for n, width := 0, 0; ; n++ {
		record, err := r.Read()
		if err != nil {
			break
		}
		if n == maxTableRows {
			out.WriteString("\nThe first " + grouping(maxTableRows) + " rows are shown; the source has all.\n")
			break
		}
		if n == 0 {
			if width = len(record); width < 2 {
				return nil
			}
		}
		for i := range width {
			field := ""
			if i < len(record) {
				field = record[i]
			}
			out.WriteString("| " + literal(field) + " ")
		}
		out.WriteString("|\n")
		if n == 0 {
			out.WriteString(strings.Repeat("|---", width) + "|\n")
		}
	}
	return out.Bytes()
}

// literal escapes a field so that Markdown shows its characters. It replaces line breaks by spaces.
func literal(field string) string {
	var out strings.Builder
	for _, r := range strings.TrimSpace(field) {
		switch {
		case r == '\n' || r == '\r':
			r = ' '
		case strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r):
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
