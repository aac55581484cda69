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
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

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

// Ensure that a bucket of which lists are read in short pages is one like others, and lists all that is there.
func TestStore_shortAnswers(t *testing.T) {
	short := func(t *testing.T, v *server) *s3.Store {
		o := v.options()
		o.AnswerBytes = s3.LeastAnswer
		return openWith(t, o)
	}
	objectstest.Run(t, func(t *testing.T) objects.Store { return short(t, serve(t)) },
		objectstest.Options{Large: 300 << 10, Overwrites: true})
	v := serve(t)
	const all = 300
	for i := range all {
		v.held[fmt.Sprintf("c/1/log/%0200d/%0200d", i, i)] = nil
	}
	longest := 0
	v.setBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		n, _ := strconv.Atoi(r.URL.Query().Get("max-keys"))
		longest = max(longest, n)
		return false
	})
	found, more, err := short(t, v).List(t.Context(), "log/", "", objects.MaxList)
	if err != nil || more || len(found) != all || longest == 0 || longest > 96 {
		t.Errorf("%d of %d are listed in pages of %d, %v, %v", len(found), all, longest, more, err)
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
	if err := try(v.Listener.Addr().String(), nil); !errors.Is(err, objects.ErrNoTLS) {
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

// patient is a body that counts what is read of it, ahead and to be sent.
type patient struct {
	io.ReadSeeker
	sent, ahead int
}

func (p *patient) Read(to []byte) (int, error) {
	n, err := p.ReadSeeker.Read(to)
	p.sent += n
	return n, err
}

// ReadAhead implements objects.Patient.
func (p *patient) ReadAhead(to []byte) (int, error) {
	n, err := p.ReadSeeker.Read(to)
	p.ahead += n
	return n, err
}

// Ensure that a body is read once for its sums, without waiting, and once to be sent: a bound of bytes a second counts what is
// sent.
func TestStore_Put_readsAhead(t *testing.T) {
	for _, size := range []int{10 << 10, 300 << 10} {
		p := &patient{ReadSeeker: bytes.NewReader(make([]byte, size))}
		if err := serve(t).open(t).Put(t.Context(), "o", p, int64(size)); err != nil || p.sent != size || p.ahead != size {
			t.Errorf("of %d bytes %d were read to be sent, and %d ahead: %v", size, p.sent, p.ahead, err)
		}
	}
}
