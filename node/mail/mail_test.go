package mail

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// office is a mail server that takes the letters of one user.
type office struct {
	got    chan string // letters
	inTLS  chan bool   // of each login, whether it came by TLS
	reject bool        // what is sent
}

type counter struct {
	o  *office
	c  *smtp.Conn
	to string
}

func (o *office) NewSession(c *smtp.Conn) (smtp.Session, error) { return &counter{o: o, c: c}, nil }

func (*counter) AuthMechanisms() []string { return []string{sasl.Plain} }
func (s *counter) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		_, encrypted := s.c.TLSConnectionState()
		s.o.inTLS <- encrypted
		if user != "shoal" || password != "sesame" {
			return errors.New("wrong")
		}
		return nil
	}), nil
}
func (*counter) Mail(string, *smtp.MailOptions) error        { return nil }
func (s *counter) Rcpt(to string, _ *smtp.RcptOptions) error { s.to = to; return nil }
func (*counter) Reset()                                      {}
func (*counter) Logout() error                               { return nil }
func (s *counter) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if s.o.reject {
		return &smtp.SMTPError{Code: 554, Message: "no room"}
	}
	s.o.got <- s.to + "\n" + string(text)
	return err
}

// open opens a mail server on a socket; implicit is TLS from the first byte.
func open(t *testing.T, implicit bool) (*office, *Sender) {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate, of example.com
	t.Cleanup(certified.Close)
	o := &office{got: make(chan string, 1), inTLS: make(chan bool, 1)}
	server := smtp.NewServer(o)
	server.TLSConfig = &tls.Config{Certificates: certified.TLS.Certificates}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	scheme := "smtp"
	if implicit {
		ln, scheme = tls.NewListener(ln, server.TLSConfig), "smtps"
	}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })

	s := read(t, map[string]string{"SMTP_CONNECTION_URL": scheme + "://shoal:sesame@127.0.0.1:" + port, "EMAIL_FROM_ADDRESS": "Shoal <shoal@example.com>"})
	s.tls = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	s.tls.RootCAs.AddCert(certified.Certificate())
	return o, s
}

func read(t *testing.T, env map[string]string) *Sender {
	t.Helper()
	s, err := Read(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var letter = Letter{To: "ann@example.com", Subject: "Come in", Text: "https://code.example.com/join?link=1f"}

// A letter goes by STARTTLS or TLS to a real server, and the password never in clear.
func TestSendMail_usesTLSAndNeverShowsThePassword(t *testing.T) {
	t.Parallel()
	for _, implicit := range []bool{false, true} {
		o, s := open(t, implicit)
		if err := s.Send(t.Context(), letter); err != nil {
			t.Fatalf("TLS from the first byte %v: %v", implicit, err)
		}
		got := <-o.got
		for _, part := range []string{"ann@example.com\n", "Subject: Come in", "From: \"Shoal\" <shoal@example.com>", "https://code.example.com/join?link=3D1f"} {
			if !strings.Contains(got, part) {
				t.Errorf("the letter lacks %q:\n%s", part, got)
			}
		}
		if !<-o.inTLS {
			t.Error("the password came in clear")
		}
	}
}

// What goes wrong is an error that names the server and not the password.
func TestSendMail_errorNamesTheServerNotThePassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("open\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(o *office, s *Sender){
		"a wrong password":         func(_ *office, s *Sender) { s.password = "guess" },
		"one of a file":            func(_ *office, s *Sender) { s.passwordFile = file },
		"a file that is not there": func(_ *office, s *Sender) { s.passwordFile = file + "x" },
		"a certificate of nobody":  func(_ *office, s *Sender) { s.tls = nil },
		"a letter that is refused": func(o *office, _ *Sender) { o.reject = true },
		"nobody who listens":       func(_ *office, s *Sender) { s.port = 1 },
	} {
		o, s := open(t, false)
		spoil(o, s)
		err := s.Send(t.Context(), letter)
		if err == nil || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "guess") || strings.Contains(err.Error(), letter.Text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A password does not go to a server without TLS.
func TestSendMail_sendsNoPasswordToServersWithoutTLS(t *testing.T) {
	t.Parallel()
	o, s := open(t, false)
	plain := smtp.NewServer(o)
	plain.AllowInsecureAuth = true
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = plain.Serve(ln) }()
	t.Cleanup(func() { _ = plain.Close() })
	s.port = ln.Addr().(*net.TCPAddr).Port
	if err := s.Send(t.Context(), letter); err == nil || len(o.inTLS) > 0 {
		t.Errorf("%v, and the server was shown a password: %v", err, len(o.inTLS) > 0)
	}
}

func TestMailSettings_areReadFromVariables(t *testing.T) {
	t.Parallel()
	const from = "shoal@example.com"
	for _, c := range []struct {
		env  map[string]string
		want Sender
	}{
		{map[string]string{"SMTP_CONNECTION_URL": "smtp://mx", "EMAIL_FROM_ADDRESS": from}, Sender{host: "mx", port: 587}},
		{map[string]string{"SMTP_CONNECTION_URL": "smtps://u:p%40@mx", "SMTP_PASSWORD": "not this", "EMAIL_FROM_ADDRESS": from}, Sender{host: "mx", port: 465, implicit: true, user: "u", password: "p@"}},
		{map[string]string{"SMTP_HOST": "mx", "SMTP_PORT": "465", "SMTP_USERNAME": "u", "SMTP_PASSWORD_FILE": "/f", "EMAIL_FROM_ADDRESS": from}, Sender{host: "mx", port: 465, implicit: true, user: "u", passwordFile: "/f"}},
	} {
		c.want.from = from
		if got := read(t, c.env); *got != c.want {
			t.Errorf("%v: %+v, want %+v", c.env, *got, c.want)
		}
	}
	if s := read(t, map[string]string{"EMAIL_FROM_ADDRESS": from}); s != nil {
		t.Errorf("without a server: %+v", s)
	}
	for name, env := range map[string]map[string]string{
		"SMTP_CONNECTION_URL": {"SMTP_CONNECTION_URL": "mail.example.com:587/secret", "EMAIL_FROM_ADDRESS": from},
		"SMTP_PORT":           {"SMTP_HOST": "mx", "SMTP_PORT": "secret", "EMAIL_FROM_ADDRESS": from},
		"EMAIL_FROM_ADDRESS":  {"SMTP_HOST": "mx", "SMTP_PASSWORD": "secret"},
	} {
		_, err := Read(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", env, err)
		}
	}
}
