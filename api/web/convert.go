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
	mostConverted = 4 << 20 // bytes of a notebook or a table
	tableRows     = 1000
)

// converters convert files to Markdown, by extension. They return nil for invalid files.
var converters = map[string]func([]byte) []byte{
	".ipynb": notebook,
	".csv":   func(text []byte) []byte { return table(text, ',') },
	".tsv":   func(text []byte) []byte { return table(text, '\t') },
}

// isDrawn reports, by its name, whether a file is shown as a document by default.
func isDrawn(file string) bool {
	return markdown.Named(file) || converters[strings.ToLower(path.Ext(file))] != nil
}

// markdownOf returns a file as Markdown; nil if it is shown as source.
func markdownOf(language, file string, text []byte) []byte {
	if markdown.Is(language) {
		return text
	}
	convert := converters[strings.ToLower(path.Ext(file))]
	if convert == nil || len(text) > mostConverted {
		return nil
	}
	return convert(text)
}

// lineList is text that a notebook stores as a string or as a list of lines.
type lineList string

// UnmarshalJSON reads a text, or a list of lines, as notebooks have both.
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

// notebook converts a Jupyter notebook to Markdown: text stays text, code and output become code
// blocks, and pictures and tables become their plain text.
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

// fence writes a code block with a fence that the code does not contain.
func fence(out *bytes.Buffer, language, code string) {
	mark := "```"
	for strings.Contains(code, mark) {
		mark += "`"
	}
	// A name with a space or a back-quote would end the line.
	if strings.ContainsFunc(language, func(r rune) bool { return r <= ' ' || r == '`' }) {
		language = ""
	}
	out.WriteString(mark + language + "\n" + strings.TrimRight(code, "\n") + "\n" + mark + "\n\n")
}

// table converts separated values to a table. The first row has the names.
func table(text []byte, comma rune) []byte {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true

	var out bytes.Buffer
	for n, width := 0, 0; ; n++ {
		record, err := r.Read()
		if err != nil {
			break
		}
		if n == tableRows {
			out.WriteString("\nThe first " + grouping(tableRows) + " rows are shown; the source has all.\n")
			break
		}
		if n == 0 {
			// A single column is shown as it is.
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

// literal escapes a field for Markdown.
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
