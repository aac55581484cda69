package console_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// counted counts what is read of it.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func (c *counted) Close() error { return nil }

// Ensure that nobody makes the member read, keep or write to its disk what a login needs not: a form of files, or one that says
// no length.
func TestConsole_login_formOfFiles(t *testing.T) {
	h, _ := serve(t, &member{}, sample(says("one")))
	const boundary = "0123456789"
	form := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"next\"; filename=\"f\"\r\n\r\n" +
		strings.Repeat("x", 1<<20) + "\r\n--" + boundary + "--\r\n"
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, length := range []int64{-1, int64(len(form))} {
			body := &counted{Reader: strings.NewReader(form)}
			w := get(h, "/login", func(r *http.Request) {
				r.Method, r.Body, r.ContentLength = method, body, length
				r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
			})
			if body.read > 4<<10 {
				t.Errorf("%s of a form with length %d: %d bytes of it were read, answered %d", method, length, body.read, w.Code)
			}
		}
	}
}

// Ensure that a login that is refused leads on to the page that was asked for, once it is sent again.
func TestConsole_login_refusedGoesOn(t *testing.T) {
	h, _ := serve(t, &member{}, sample(says("one")))
	if w := get(h, "/login?next=/sample?x=1"); !strings.Contains(w.Body.String(), `value="/sample?x=1"`) {
		t.Errorf("the form does not lead on: %s", w.Body.String())
	}
	w := post(h, "/login", map[string][]string{"name": {"a"}, "password": {"b"}, "next": {"/sample?x=1"}})
	if !strings.Contains(w.Body.String(), `value="/sample?x=1"`) {
		t.Errorf("%d: the form does not lead on: %s", w.Code, w.Body.String())
	}
}
