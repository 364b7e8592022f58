package tool

import "testing"

func TestTestOf_recognizesTheTestedFile(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{
		{"test/client_test.rb", "lib/client.rb"}, {"t/unit/test_canvas.py", "celery/canvas.py"}, {"src/ClientTest.kt", "src/Client.kt"},
		{"a/client.spec.ts", "a/client.ts"}, {"it/HTTPClientIT.java", "HTTPClient.java"}, {"store/store_test.go", "store/store.go"},
	} {
		if !sameButTest(names[0], names[1]) {
			t.Errorf("%s is not called like %s", names[0], names[1])
		}
	}
	for _, names := range [][2]string{{"test/client_test.rb", "lib/server.rb"}, {"tests/test.py", "lib/spec.py"}, {"ClientPoolTest.kt", "Client.kt"}} {
		if sameButTest(names[0], names[1]) {
			t.Errorf("%s is called like %s", names[0], names[1])
		}
	}
}
