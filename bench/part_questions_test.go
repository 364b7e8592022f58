package bench

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What is asked can be asked: every call names a tool and has arguments, every
// question an answer and a control.
func TestTheQuestionsCanBeAsked(t *testing.T) {
	t.Parallel()
	for _, file := range questionLists {
		list, err := questionsOf[asking](file)
		if err != nil || len(list) < 7 {
			t.Fatal(file, len(list), err)
		}
		for _, a := range list {
			if a.Question == "" || len(a.Answer) == 0 || len(a.Calls) == 0 || len(a.Control) == 0 {
				t.Errorf("%s: %+v is no question", file, a)
			}
		}
	}
	typos, err := questionsOf[misspelt]("typos.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range typos {
		if m.Question == "" || m.Answer == "" || m.Call.tool == "" || len(m.Control) == 0 {
			t.Errorf("%+v is no question", m)
		}
	}
}

func TestACallIsAToolAndItsArguments(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{`["grep",{"pattern":"a"}]`: true, `["grep"]`: false, `["grep",{},3]`: false, `{"grep":1}`: false, `[{},"grep"]`: false} {
		var c namedCall
		if err := json.Unmarshal([]byte(text), &c); (err == nil) != good {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

func TestTheFirstAdviceIsFollowed(t *testing.T) {
	t.Parallel()
	last := namedCall{"read_file", map[string]any{"path": "src/evit.c", "limit": 3.0}}
	for text, want := range map[string]map[string]any{
		`File "src/evit.c" not found; did you mean "src/evict.c" or "src/exit.c"?`: {"path": "src/evict.c", "limit": 3.0},
		"No file matches. Near names: src/evict.c.\nComplete.":                     {"path": "src/evict.c", "limit": 3.0},
		`Wrong arguments. Mended: read_file {"path":"a.c"}`:                        {"path": "a.c"},
		"Nothing is there.": nil,
	} {
		next, ok := advised(text, "path", last)
		if ok != (want != nil) || ok && (!reflect.DeepEqual(next.args, want) || next.tool != "read_file") {
			t.Errorf("%s: %+v, %t, want %+v", text, next, ok, want)
		}
	}
}

func TestWhatWasReadIsCounted(t *testing.T) {
	t.Parallel()
	if c := costOf([]string{"one two", "three"}); c.calls != 2 || c.tokens != 4 || c.bytes != 13 {
		t.Errorf("%+v", c)
	}
	if !hasAll([]string{"a b", "c"}, []string{"c", "a"}) || hasAll([]string{"a b"}, []string{"c"}) || !hasAll(nil, nil) {
		t.Error("what has been read is not found in it")
	}
}

// A question about all repositories is asked where those are there that know the
// answer.
func TestAQuestionNeedsItsRepositories(t *testing.T) {
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
