package keys_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server"
)

// world is a member with a console, a client of it, and a browser.
type world struct {
	t       *testing.T
	ctx     context.Context
	console string
	client  *clientv3.Client
	browser *http.Client
}

// start starts a member with a console that administers, unless flags say something else.
func start(t *testing.T, flags ...string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	client, peer, console := testnet.Address(t), "http://"+testnet.Address(t), "http://"+testnet.Address(t)
	c, err := config.Load(append([]string{"--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"),
		"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client, "--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer, "--initial-cluster=m=" + peer, "--listen-console-urls=" + console,
		"--console=admin"}, flags...), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(ctx, c, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, ctx: ctx, console: console}
	w.client, err = clientv3.New(clientv3.Config{Endpoints: []string{client}, Logger: zap.NewNop(), MaxCallSendMsgSize: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Close() })
	w.newBrowser()
	return w
}

func (w *world) newBrowser() {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	w.browser = &http.Client{Jar: jar, Transport: transport}
}

func (w *world) put(key, value string, options ...clientv3.OpOption) int64 {
	w.t.Helper()
	answer, err := w.client.Put(w.ctx, key, value, options...)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Header.Revision
}

func (w *world) del(key string) int64 {
	w.t.Helper()
	answer, err := w.client.Delete(w.ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Header.Revision
}

// value is the value of a key; ok: it exists.
func (w *world) value(key string) (value string, ok bool) {
	w.t.Helper()
	answer, err := w.client.Get(w.ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(answer.Kvs) == 0 {
		return "", false
	}
	return string(answer.Kvs[0].Value), true
}

// at is the address of a page, with pairs of a query.
func at(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// look returns a page.
func (w *world) look(target string) string {
	w.t.Helper()
	text, _ := w.open(target)
	return text
}

func (w *world) open(target string) (text string, answer *http.Response) {
	w.t.Helper()
	begun := time.Now()
	answer, err := w.browser.Get(w.console + target)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode >= 500 {
		w.t.Errorf("%s: %s: %s", target, answer.Status, body)
	}
	if took := time.Since(begun); took > 20*time.Second {
		w.t.Errorf("%s took %s", target, took)
	}
	return string(body), answer
}

// lookFor is look until a page has a text: on a slow machine a look may end before it has all.
func (w *world) lookFor(target, text string) (page string) {
	w.t.Helper()
	for range 20 {
		if page = w.look(target); strings.Contains(strings.ReplaceAll(page, "\u2009", ""), text) {
			break
		}
	}
	return page
}

// send posts a form, and returns the page that it leads to.
func (w *world) send(target string, pairs ...string) (text string, answer *http.Response) {
	w.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	request, err := http.NewRequest(http.MethodPost, w.console+target, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", w.console)
	answer, err = w.browser.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body), answer
}

var (
	inputs    = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)
	textareas = regexp.MustCompile(`(?s)<textarea id="value"[^>]*>\n(.*?)</textarea>`)
	anchors   = regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>(?:<bdi>)?([^<]*)`)
)

// fieldsOf are the hidden fields of the last form of a page, as a browser reads them.
func fieldsOf(page string) (pairs []string) {
	form := page[max(0, strings.LastIndex(page, `<form class="fields`)):]
	for _, m := range inputs.FindAllStringSubmatch(form, -1) {
		pairs = append(pairs, m[1], html.UnescapeString(m[2]))
	}
	return pairs
}

// textOf is the text of the form of a page, as a browser sends it.
func textOf(t *testing.T, page string) string {
	t.Helper()
	m := textareas.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no field for a value: %s", page)
	}
	text := strings.ReplaceAll(strings.ReplaceAll(html.UnescapeString(m[1]), "\r\n", "\n"), "\r", "\n")
	return strings.ReplaceAll(text, "\n", "\r\n")
}

// linkOf is where a link with a text leads to.
func linkOf(page, text string) string {
	for _, m := range anchors.FindAllStringSubmatch(page, -1) {
		if strings.TrimSpace(html.UnescapeString(m[2])) == text {
			return html.UnescapeString(m[1])
		}
	}
	return ""
}

var tags = regexp.MustCompile(`<[^>]*>`)

// wants fails unless a page has all texts, as markup or as a reader sees it, and none of those that begin with "!". Numbers are
// without spaces.
func wants(t *testing.T, about, page string, texts ...string) {
	t.Helper()
	seen := strings.ReplaceAll(html.UnescapeString(tags.ReplaceAllString(page, "")), "\u2009", "")
	for _, text := range texts {
		unwanted, no := strings.CutPrefix(text, "!")
		if no && (strings.Contains(page, unwanted) || strings.Contains(seen, unwanted)) {
			t.Errorf("%s: the page has %q", about, unwanted)
		}
		if !no && !strings.Contains(page, text) && !strings.Contains(seen, text) {
			t.Errorf("%s: the page does not have %q: %s", about, text, inside(page))
		}
	}
}

// inside is what a page shows within its frame.
func inside(page string) string {
	if _, after, found := strings.Cut(page, `<main`); found {
		page, _, _ = strings.Cut(after, `</main>`)
	}
	return page[:min(len(page), 6000)]
}

func many(n int, format string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return list
}

// fill writes many keys, in transactions.
func (w *world) fill(keys []string, value string) {
	w.t.Helper()
	const most = 100
	for len(keys) > 0 {
		part := keys[:min(most, len(keys))]
		keys = keys[len(part):]
		var ops []clientv3.Op
		for _, key := range part {
			ops = append(ops, clientv3.OpPut(key, value))
		}
		if _, err := w.client.Txn(w.ctx).Then(ops...).Commit(); err != nil {
			w.t.Fatal(err)
		}
	}
}
