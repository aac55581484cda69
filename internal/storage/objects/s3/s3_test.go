package s3_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/objects/s3"
)

// Ensure that a bucket is a place like others, also of a server that ignores conditions.
func TestStore(t *testing.T) {
	for _, conditions := range []bool{true, false} {
		t.Run(fmt.Sprint("conditions ", conditions), func(t *testing.T) {
			objectstest.Run(t, func(t *testing.T) objects.Store {
				v := serve(t)
				v.conditions = conditions
				return v.open(t)
			}, objectstest.Options{Large: 300 << 10, Overwrites: !conditions})
		})
	}
}

// Ensure that all objects lie below the prefix, and that what others have beside it is not named.
func TestStore_prefix(t *testing.T) {
	v := serve(t)
	s := v.open(t)
	v.held["c/10"], v.held["c/1/UPPER"], v.held["c/1"] = []byte("x"), []byte("x"), []byte("x")
	if err := s.Put(t.Context(), "obj/a", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	if v.held["c/1/obj/a"] == nil {
		t.Errorf("the bucket has %v", v.held)
	}
	found, more, err := s.List(t.Context(), "", "", 10)
	if err != nil || more || len(found) != 1 || found[0].Name != "obj/a" {
		t.Errorf("listed %v, %v, %v", found, more, err)
	}
}

// Ensure that each refusal has its kind, at each operation.
func TestStore_refusals(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{503, "SlowDown", objects.ErrBusy}, {500, "InternalError", objects.ErrBusy}, {429, "TooManyRequests", objects.ErrBusy},
		{502, "", objects.ErrBusy}, {409, "ConditionalRequestConflict", objects.ErrBusy}, {403, "AccessDenied",
			objects.ErrDenied},
		{403, "InvalidAccessKeyId", objects.ErrCredentials}, {403, "SignatureDoesNotMatch", objects.ErrCredentials},
		{400, "ExpiredToken", objects.ErrCredentials}, {403, "RequestTimeTooSkewed", objects.ErrClock}, {404,
			"NoSuchBucket", objects.ErrNoPlace},
		{301, "PermanentRedirect", objects.ErrRegion}, {507, "InsufficientStorage", objects.ErrFull}, {403, "QuotaExceeded",
			objects.ErrFull},
	} {
		v := serve(t)
		v.held["c/1/o"] = []byte("x")
		s := v.open(t)
		v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead { // it has no body to say why
				return false
			}
			refuse(w, c.status, c.code)
			return true
		})
		_, getErr := s.Get(t.Context(), "o", 0, -1)
		_, _, listErr := s.List(t.Context(), "", "", 10)
		putErr := s.Put(t.Context(), "n", strings.NewReader("x"), 1)
		large := s.Put(t.Context(), "n", bytes.NewReader(make([]byte, 100<<10)), 100<<10)
		for what, err := range map[string]error{"get": getErr, "list": listErr, "put": putErr, "large put": large,
			"delete": s.Delete(t.Context(), "o")} {
			if !errors.Is(err, c.want) || objects.Passing(err) != (c.want == objects.ErrBusy) {
				t.Errorf("%d %s at a %s: %v", c.status, c.code, what, err)
			}
			if err != nil && !strings.Contains(err.Error(), "said by the test") {
				t.Errorf("%d %s at a %s: the server's words are missing: %v", c.status, c.code, what, err)
			}
		}
	}
}

// Ensure that a region that the server names is passed on.
func TestStore_region(t *testing.T) {
	v := serve(t)
	v.setBefore(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w,
			`<Error><Code>AuthorizationHeaderMalformed</Code><Message>wrong</Message><Region>eu-north-1</Region></Error>`)
		return true
	})
	if _, _, err := v.open(t).List(t.Context(), "", "", 1); !errors.Is(err, objects.ErrRegion) ||
		!strings.Contains(err.Error(), "eu-north-1") {
		t.Errorf("got %v", err)
	}
}

// Ensure that an answer that is lost after the work was done is no loss and no second object: PutOnce reads back.
func TestStore_lostAnswers(t *testing.T) {
	for _, size := range []int64{0, 10, 300 << 10} {
		v := serve(t)
		s := v.open(t)
		v.setAfter(lose)
		content := make([]byte, size)
		err := s.Put(t.Context(), "o", bytes.NewReader(content), size)
		if !errors.Is(err, objects.ErrUnreachable) {
			t.Fatalf("size %d: %v", size, err)
		}
		v.setAfter(nil)
		if err := objects.PutOnce(t.Context(), s, "o", bytes.NewReader(content), size); err != nil {
			t.Errorf("size %d: %v", size, err)
		}
		v.held["c/1/o"] = append([]byte("!"), content...)
		if err := objects.PutOnce(t.Context(), s, "o", bytes.NewReader(content), size); !errors.Is(err, objects.ErrExists) {
			t.Errorf("size %d: others' bytes were taken for ours: %v", size, err)
		}
	}
}

// Ensure that a server that refuses conditions is written to without, after it was asked whether the name is taken.
func TestStore_unconditional(t *testing.T) {
	v := serve(t)
	v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-None-Match") == "" {
			return false
		}
		refuse(w, http.StatusNotImplemented, "NotImplemented")
		return true
	})
	s := v.open(t)
	for _, size := range []int64{3, 300 << 10} {
		name := fmt.Sprint("o-", size)
		if err := s.Put(t.Context(), name, bytes.NewReader(make([]byte, size)), size); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), name, bytes.NewReader(make([]byte, size)), size); !errors.Is(err, objects.ErrExists) {
			t.Error(err)
		}
	}
	if refuses, err := s.RefusesOverwrite(t.Context(), "o-3", strings.NewReader("\x00\x00\x00"), 3); refuses || err != nil {
		t.Errorf("got %v, %v", refuses, err)
	}
}

// Ensure that a body that breaks off is an error at its end, and that nothing is taken for more than it is.
func TestStore_bodies(t *testing.T) {
	const whole = "0123456789"
	for name, answer := range map[string]func(w http.ResponseWriter){
		"cut": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, whole[:4])
		},
		"without a length": func(w http.ResponseWriter) {
			fmt.Fprint(w, whole[:4])
			_ = http.NewResponseController(w).Flush()
		},
		"another range": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "4")
			w.Header().Set("Content-Range", "bytes 0-3/10")
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, whole[:4])
		},
		"the whole": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, whole)
		},
	} {
		v := serve(t)
		v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
			answer(w)
			return true
		})
		s := v.open(t)
		for _, offset := range []int64{0, 2} {
			body, err := s.Get(t.Context(), "o", offset, -1)
			if err == nil {
				var got []byte
				if got, err = io.ReadAll(body); err == nil && string(got) != whole[offset:] {
					t.Errorf("%s from %d: got %q without an error", name, offset, got)
				}
				_ = body.Close()
			}
			if fine := name == "the whole" && offset == 0; (err == nil) != fine || err != nil && !objects.Passing(err) {
				t.Errorf("%s from %d: %v", name, offset, err)
			}
		}
	}
}

// Ensure that a list that is out of order, or of other objects, is refused rather than believed.
func TestStore_List_hostile(t *testing.T) {
	const head, entry, foot = `<ListBucketResult><IsTruncated>false</IsTruncated>`,
		`<Contents><Key>%s</Key><Size>1</Size></Contents>`, `</ListBucketResult>`
	for name, keys := range map[string][]string{
		"out of order": {"c/1/b", "c/1/a"}, "twice": {"c/1/a", "c/1/a"}, "another prefix": {"c/2/a"}, "before": {"c/1/0"},
	} {
		v := serve(t)
		v.setBefore(func(w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, head)
			for _, key := range keys {
				fmt.Fprintf(w, entry, key)
			}
			fmt.Fprint(w, foot)
			return true
		})
		if found, _, err := v.open(t).List(t.Context(), "", "9", 10); !errors.Is(err, objects.ErrBusy) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// Ensure that a page of a proxy is taken neither for an empty list nor for the end of a write.
func TestStore_anotherPage(t *testing.T) {
	for _, page := range []string{"<html><body>Please log in</body></html>", "", "<ListBucketResult>", "<Error></Error>"} {
		v := serve(t)
		v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				return false
			}
			fmt.Fprint(w, page)
			return true
		})
		s := v.open(t)
		found, _, listErr := s.List(t.Context(), "", "", 10)
		_, getErr := s.Get(t.Context(), "o", 0, -1)
		putErr := s.Put(t.Context(), "n", strings.NewReader("x"), 1)
		large := s.Put(t.Context(), "n", bytes.NewReader(make([]byte, 100<<10)), 100<<10)
		for what, err := range map[string]error{"list": listErr, "get": getErr, "put": putErr, "large put": large} {
			if !objects.Passing(err) {
				t.Errorf("%q for a %s: %v (%v)", page, what, err, found)
			}
		}
	}
}

// Ensure that answers that the library would hold as a whole are bounded, in bytes and in what is made of them.
func TestStore_boundedAnswers(t *testing.T) {
	for name, answer := range map[string]func(w io.Writer) error{
		"bytes": func(w io.Writer) error { return repeat(w, "x", 64<<20) },
		"elements": func(w io.Writer) error {
			_, err := io.WriteString(w, "<ListBucketResult>")
			return errors.Join(err, repeat(w, "<Contents/>", 1<<20))
		},
		"spaces": func(w io.Writer) error { return repeat(w, " ", 64<<20) },
	} {
		for _, status := range []int{200, 403, 503} {
			v := serve(t)
			var sent atomic.Int64
			v.setBefore(func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(status)
				_ = answer(counting{w, &sent}) // the client goes away
				return true
			})
			s := v.open(t)
			_, _, listErr := s.List(t.Context(), "", "", 10)
			if status == 200 && !errors.Is(listErr, objects.ErrDamaged) {
				t.Errorf("%s: the list was read: %v", name, listErr)
			}
			for what, err := range map[string]error{"list": listErr, "delete": s.Delete(t.Context(), "o"),
				"large": s.Put(t.Context(), "n", bytes.NewReader(make([]byte, 100<<10)), 100<<10)} {
				if err == nil && (what != "delete" || status != 200) {
					t.Errorf("%s, %d: a %s succeeded", name, status, what)
				}
			}
			v.Server.Close()                                     // waits for the handlers
			if most := int64(7 * 16 << 20); sent.Load() > most { // what lies in the buffers of sockets counts, too
				t.Errorf("%s, %d: the server sent %d bytes of answers", name, status, sent.Load())
			}
		}
	}
}

type counting struct {
	io.Writer
	sent *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

func repeat(w io.Writer, text string, size int) error {
	block := []byte(strings.Repeat(text, 8<<10))
	for written := 0; written < size; written += len(block) {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// Ensure that a request without progress ends, whichever side waits, and that one that moves slowly does not.
func TestStore_stall(t *testing.T) {
	hang := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hang) }) }
	v := serve(t)
	t.Cleanup(release) // before the server closes
	o := v.options()
	o.Stall = 100 * time.Millisecond
	s := openWith(t, o)
	v.held["c/1/o"] = make([]byte, 1<<20)
	stalled := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, objects.ErrUnreachable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			return false
		}
		if r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "" { // the headers come, and the body does not
			w.Header().Set("Content-Length", "1048576")
			w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
			_, _ = w.Write(make([]byte, 10))
			_ = http.NewResponseController(w).Flush()
		}
		<-hang
		return true
	})
	_, _, err := s.List(t.Context(), "", "", 1)
	stalled("list", err)
	stalled("put that is not read", s.Put(t.Context(), "n", bytes.NewReader(make([]byte, 32<<10)), 32<<10))
	body, err := s.Get(t.Context(), "o", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(body)
	stalled("get", errors.Join(err, body.Close()))
	release()
	// A caller that takes its time between two reads is not the server's fault.
	v.setBefore(nil)
	body, err = s.Get(t.Context(), "o", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(body, make([]byte, 10))
	<-time.After(3 * o.Stall)
	if n, err := io.Copy(io.Discard, body); err != nil || n != 1<<20-10 {
		t.Errorf("after a pause of the reader: %d bytes, %v", n, err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	slow := &pausing{ReadSeeker: bytes.NewReader(make([]byte, 8<<10)), pause: 3 * o.Stall}
	if err := s.Put(t.Context(), "slow", slow, 8<<10); err != nil {
		t.Errorf("a body that comes slowly: %v", err)
	}
}

// pausing is a body that comes slowly, the second time.
type pausing struct {
	io.ReadSeeker
	pause time.Duration
	seeks int
}

func (p *pausing) Seek(offset int64, whence int) (int64, error) {
	p.seeks++
	return p.ReadSeeker.Seek(offset, whence)
}

func (p *pausing) Read(to []byte) (int, error) {
	if p.seeks > 1 {
		<-time.After(p.pause)
	}
	return p.ReadSeeker.Read(to)
}

// Ensure that a server whose certificate is not for its name, or of no known authority, is refused as that, and that an
// authority of one's own is taken.
func TestStore_tls(t *testing.T) {
	v := serve(t)
	secure := httptest.NewUnstartedServer(v)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	o := v.options()
	o.Plain = false
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	try := func(endpoint string, config *tls.Config) error {
		o.Endpoint, o.TLS = endpoint, config
		_, _, err := openWith(t, o).List(t.Context(), "", "", 1)
		return err
	}
	address := secure.Listener.Addr().String()
	if err := try(address, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("with the authority: %v", err)
	}
	if err := try(address, nil); !errors.Is(err, objects.ErrTLS) {
		t.Errorf("without the authority: %v", err)
	}
	if err := try(strings.Replace(address, "127.0.0.1", "localhost", 1), &tls.Config{RootCAs: pool,
		MinVersion: tls.VersionTLS12}); !errors.Is(err, objects.ErrTLS) {
		t.Errorf("by another name: %v", err)
	}
	if err := try(v.Listener.Addr().String(), nil); !errors.Is(err, objects.ErrTLS) {
		t.Errorf("a server without TLS: %v", err)
	}
}

// Ensure that no secret is in an error or in what is printed of credentials, and that none is sent.
func TestStore_secrets(t *testing.T) {
	v := serve(t)
	var sent atomic.Pointer[string]
	v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
		text := fmt.Sprint(r.URL, r.Header)
		sent.Store(&text)
		refuse(w, http.StatusForbidden, "SignatureDoesNotMatch")
		return true
	})
	_, _, err := v.open(t).List(t.Context(), "", "", 1)
	c := s3.Credentials{AccessKey: "key", SecretKey: "plain-secret", Session: "plain-secret"}
	for _, text := range []string{*sent.Load(), fmt.Sprint(err), fmt.Sprintf("%v %+v %#v %s", c, c, c, c)} {
		if strings.Contains(text, "plain-secret") {
			t.Errorf("the secret is in %q", text)
		}
	}
}

// Ensure that a store that no longer has credentials says so, and asks nothing.
func TestStore_noCredentials(t *testing.T) {
	v := serve(t)
	o := v.options()
	o.Credentials = func() (s3.Credentials, error) { return s3.Credentials{}, errors.New("the file is gone") }
	_, _, err := openWith(t, o).List(t.Context(), "", "", 1)
	if !errors.Is(err, s3.ErrNoCredentials) || !strings.Contains(err.Error(), "the file is gone") || objects.Passing(err) ||
		len(v.asked) > 0 {
		t.Errorf("%v, %q", err, v.asked)
	}
}

// Ensure that parts of an upload that fails are removed, also when the caller gave up.
func TestStore_partsAreRemoved(t *testing.T) {
	v := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	parts := 0
	v.setBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("partNumber") {
			if parts++; parts == 2 {
				cancel()
			}
		}
		return false
	})
	if err := v.open(t).Put(ctx, "o", bytes.NewReader(make([]byte, 300<<10)), 300<<10); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.uploads) > 0 || len(v.held) > 0 {
		t.Errorf("%d uploads and %d objects are left", len(v.uploads), len(v.held))
	}
}
