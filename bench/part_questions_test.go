package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every call names a tool and has arguments, and every question has an answer and a control.
func TestBenchmarkQuestions_haveCallsAnAnswerAndAControl(t *testing.T) {
	t.Parallel()
	for _, file := range questionLists {
		list, err := questionsOf(file)
		if err != nil || len(list) < 7 {
			t.Fatal(file, len(list), err)
		}
		for _, a := range list {
			if a.Question == "" || len(a.Answer) == 0 || len(a.Calls) == 0 || len(a.Control) == 0 {
				t.Errorf("%s: %+v is no question", file, a)
			}
		}
	}
}

func TestNamedCall_decodesFromJSON(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{`["grep",{"pattern":"a"}]`: true, `["grep"]`: false, `["grep",{},3]`: false, `{"grep":1}`: false, `[{},"grep"]`: false} {
		var c namedCall
		if err := json.Unmarshal([]byte(text), &c); (err == nil) != good {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

func TestQuestionCost_countsTheTokensRead(t *testing.T) {
	t.Parallel()
	if c := costOf([]string{"one two", "three"}); c.calls != 2 || c.tokens != 4 || c.bytes != 13 {
		t.Errorf("%+v", c)
	}
	if !hasAll([]string{"a b", "c"}, []string{"c", "a"}) || hasAll([]string{"a b"}, []string{"c"}) || !hasAll(nil, nil) {
		t.Error("what has been read is not found in it")
	}
}

// A question about all repositories needs those that have the answer.
func TestBenchmarkQuestion_needsTheRepositoriesWithItsAnswer(t *testing.T) {
	t.Parallel()
	q := &questioned{repos: []string{"redis", "rqlite"}}
	for _, tt := range []struct{ needs, want string }{
		{"", ""}, {"redis", ""}, {"redis rqlite", ""}, {"redis weaviate", "weaviate"}, {"rqlit", ""},
	} {
		if got := q.missing(append(strings.Fields(tt.needs), "")); got != tt.want {
			t.Errorf("%q: %q is missing, want %q", tt.needs, got, tt.want)
		}
	}
}
