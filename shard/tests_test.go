package shard

import (
	"regexp"
	"strings"
	"testing"
)

// TestIsTest_recognizesTestPathsOfEachLanguage has paths of tests by language, and paths that look like tests of another
// language.
func TestIsTest_recognizesTestPathsOfEachLanguage(t *testing.T) {
	t.Parallel()
	expr := regexp.MustCompile(TestPaths())
	for _, tt := range []struct{ language, tests, others string }{
		{"Go", "a_test.go a/b_test.go A_TEST.GO store_mock.go testdata/x.go e2e/run.go",
			"adapters/rest/embedded_spec.go test_helpers.go test-x.go a.test.go a_tests.go a_spec.go contest.go latest_test_run.go a_test.x.go a_test.go.go"},
		{"Python", "test_a.py a_test.py a/conftest.py app/tests.py tests/x.py a_tests.py", "contest.py attest.py test.py a_spec.py my_conftest.py"},
		{"Ruby", "a_spec.rb spec/models/user.rb a_test.rb spec/spec_helper.rb", "inspec.rb a_specs.rb"},
		{"JavaScript", "a.spec.js a.test.js a-test.js a_spec.js __tests__/a.js a-spec.mjs specs/a.cjs", "aspec.js latest.js spec.js"},
		{"TypeScript", "a.spec.ts a.test.tsx a.spec.tsx a.test.d.ts a.e2e.spec.ts a.spec.d.ts", "spec.ts a.d.ts contest.ts"},
		{"Lua", "a_spec.lua spec/a.lua", "respec.lua"},
		{"Java", "FooTest.java FooTests.java FooTestCase.java src/test/java/Foo.java", "Latest.java Contest.java Test.java.in KeySpec.java spec/Key.java"},
		{"C#", "FooTests.cs FooTest.cs", "Attests.cs FooSpec.cs"},
		{"Kotlin, Swift and PHP", "FooTest.kt FooTests.swift FooTest.php", "TypeSpec.kt latest.swift"},
		{"Scala and Haskell", "FooSpec.scala FooSpec.hs FooTest.groovy spec/Foo.scala", "Inspec.scala"},
		{"C and C++", "a_test.cc a_unittest.cc FooTest.cpp test_a.c test-a.c a_test.c a_tests.cpp", "fastest.cc a_spec.cc fastest.cpp attest.c"},
		{"Rust", "src/tests.rs src/a/test.rs a_test.rs tests/a.rs", "contests.rs attest.rs"},
		{"Erlang", "a_SUITE.erl a_tests.erl", "a_suites.erl"},
		{"no language", "test_it.sh test-it a_test.txt test_go a.test.yml fixtures/spec.json test_o",
			"spec/openapi.yaml api.spec.json rpm_spec.in tests testing examples/a.c samples/a.c benchmarks/a.c attest/a.c o.go"},
	} {
		for want, paths := range map[bool]string{true: tt.tests, false: tt.others} {
			for path := range strings.FieldsSeq(paths) {
				lower := strings.ToLower(path)
				if got := isTest(path, lower, dirsOf(lower)); got != want {
					t.Errorf("%s: %s is a test: %v, want %v", tt.language, path, got, want)
				}
				if got := expr.MatchString(path); got != want {
					t.Errorf("%s: the expression takes %s: %v, want %v", tt.language, path, got, want)
				}
			}
		}
	}
}

// Examples rank late, but excluding tests does not exclude them.
func TestIsTest_examplesAreNoTests(t *testing.T) {
	t.Parallel()
	if got := categoryOf("examples/a/main.go"); got != testCode {
		t.Errorf("category %d, want %d", got, testCode)
	}
}

// FuzzTestPaths_expressionAgreesWithIsTest compares the expression with isTest.
func FuzzTestPaths_expressionAgreesWithIsTest(f *testing.F) {
	for _, path := range []string{"a/b_test.go", "test_.go", "test_go", "x.test.go", "x.test.o", "spec/a.rb", "FooTest.java", "tests.rs/x", "a.spec.d.ts", "test-.GO", "spec/a\n.ts", "_test.go.go", ".test.."} {
		f.Add(path)
	}
	expr := regexp.MustCompile(TestPaths())

	f.Fuzz(func(t *testing.T, path string) {
		// Beyond ASCII the two fold letters differently.
		for i := range len(path) {
			if path[i] >= 0x80 {
				return
			}
		}
		lower := strings.ToLower(path)
		if got, want := expr.MatchString(path), isTest(path, lower, dirsOf(lower)); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	})
}
