package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// surfer is a browser with cookies.
func surfer(t *testing.T, c *tls.Config) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: c}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// look returns the page at a URL, after all redirects, and where it is.
func look(t *testing.T, browser *http.Client, target string) (text, at string) {
	t.Helper()
	answer, err := browser.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), answer.Request.URL.Path
}

// startConsole starts a member with a console and users: root, and ann who may do nothing; both with the password "p".
func startConsole(t *testing.T, scheme string, c *tls.Config, more ...string) (console string) {
	t.Helper()
	console = scheme + "://" + testnet.Address(t)
	s := startAll(t, []config.Config{loadConfig(t, append([]string{"--name", "m", "--data-dir", filepath.Join(t.TempDir(), "m"),
		"--listen-client-urls=" + scheme + "://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0",
		"--initial-advertise-peer-urls=http://127.0.0.1:1", "--initial-cluster=m=http://127.0.0.1:1",
		"--listen-console-urls", console}, more...)...)})[0]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{scheme + "://" + s.ClientAddresses()[0].String()}, TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, step := range []func() error{
		func() error { _, err := client.RoleAdd(ctx, "root"); return err },
		func() error { _, err := client.UserAdd(ctx, "root", "p"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.UserAdd(ctx, "ann", "p"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return console
}

// login sends the form of the console, and returns the page to which that leads, and its path.
func login(t *testing.T, browser *http.Client, console, user, password string) (page, at string) {
	t.Helper()
	form := url.Values{"name": {user}, "password": {password}, "next": {"/members"}}
	request, err := http.NewRequest(http.MethodPost, console+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", console)
	answer, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), answer.Request.URL.Path
}

// Ensure that the console shows nothing without a login, and to a user what the user may see.
func TestServer_console_users(t *testing.T) {
	console := startConsole(t, "http", nil)
	browser := surfer(t, nil)
	if _, at := look(t, browser, console+"/members"); at != "/login" {
		t.Fatalf("without a login the browser is at %s", at)
	}
	for _, as := range []struct{ user, password, sees, at string }{
		{"root", "wrong", "The name or the password is wrong.", "/login"},
		{"nobody", "p", "The name or the password is wrong.", "/login"},
		{"root", "p", "1 voter", "/members"},
	} {
		body, at := login(t, browser, console, as.user, as.password)
		for range 20 { // to compare a password takes seconds under the race detector, on a busy machine
			if !strings.Contains(body, "did not have this within") {
				break
			}
			body, at = login(t, browser, console, as.user, as.password)
		}
		if !strings.Contains(body, as.sees) || at != as.at {
			t.Errorf("%s: at %s: %s", as.user, at, body)
		}
	}
	if text, _ := look(t, surfer(t, nil), console+"/members"); strings.Contains(text, "1 voter") {
		t.Error("another browser sees what root may see")
	}
}

// Ensure that a certificate is a login, of the user whom it names.
func TestServer_console_certificate(t *testing.T) {
	dir, authority := t.TempDir(), certstest.New(t, "first")
	cert, key := authority.Issue(dir, "member", certstest.Loopback)
	roots := authority.Publish(filepath.Join(dir, "ca.crt"))
	authority.Issue(dir, "root", certstest.Loopback)
	authority.Issue(dir, "nobody", certstest.Loopback)
	as := func(name string) *tls.Config {
		s := &secured{t: t, dir: dir}
		c := s.trusting()
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
		return c
	}
	console := startConsole(t, "https", as("root"), "--cert-file", cert, "--key-file", key, "--trusted-ca-file", roots,
		"--client-cert-auth")
	if text, _ := look(t, surfer(t, as("root")), console+"/members"); !strings.Contains(text, "1 voter") ||
		!strings.Contains(text, `<span class="user">root</span>`) {
		t.Errorf("root: %s", text)
	}
	if text, _ := look(t, surfer(t, as("nobody")), console+"/members"); strings.Contains(text, "1 voter") {
		t.Errorf("nobody: %s", text)
	}
	if _, err := surfer(t, (&secured{t: t, dir: dir}).trusting()).Get(console + "/members"); err == nil {
		t.Error("a browser without a certificate is served")
	}
}

// Ensure that a console that passwords would reach in the clear is refused.
func TestServer_console_refuses(t *testing.T) {
	for _, row := range []struct {
		url  string
		fits bool
	}{
		{"http://127.0.0.1:0", true}, {"http://localhost:0", true}, {"http://[::1]:0", true}, {"https://0.0.0.0:0", true},
		{"http://0.0.0.0:0", false}, {"http://10.0.0.1:0", false},
	} {
		c, err := config.Load([]string{"--listen-console-urls", row.url, "--auto-tls"}, nil)
		if err == nil {
			err = c.Validate()
		}
		if (err == nil) != row.fits || err != nil && !strings.Contains(err.Error(), "must be https") {
			t.Errorf("%s: got %v", row.url, err)
		}
	}
}
