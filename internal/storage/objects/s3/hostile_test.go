package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/s3"
)

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
		"bytes": func(w io.Writer) error { return repeat(w, "x", 24<<20) },
		"elements": func(w io.Writer) error {
			_, err := io.WriteString(w, "<ListBucketResult>")
			return errors.Join(err, repeat(w, "<Contents/>", 1<<20))
		},
		"spaces": func(w io.Writer) error { return repeat(w, " ", 24<<20) },
	} {
		for _, status := range []int{200, 403, 503} {
			if testing.Short() && status != 200 {
				continue
			}
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
			if most := int64(7 * 14 << 20); sent.Load() > most { // what lies in the buffers of sockets counts, too
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

// zeros is a body of any size that takes no memory.
type zeros struct{ at, size int64 }

func (z *zeros) Seek(offset int64, _ int) (int64, error) {
	z.at = offset
	return offset, nil
}

func (z *zeros) Read(p []byte) (int, error) {
	n := int(min(int64(len(p)), z.size-z.at))
	if z.at += int64(n); n == 0 {
		return 0, io.EOF
	}
	clear(p[:n])
	return n, nil
}

// allocated is how many bytes a function allocates, in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Ensure that an operation keeps within its share of memory: with a large object, and with the worst list that there may be.
func TestStore_memory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates, too")
	}
	const size = 96 << 20
	v := serve(t)
	worst := "<ListBucketResult>" + strings.Repeat("<Contents/>", 2000) + strings.Repeat("<CommonPrefixes/>", 100000) +
		"</ListBucketResult>"
	v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Query().Has("uploads"), r.Method == http.MethodHead, r.Method == http.MethodDelete:
			return false
		case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
			_, _ = io.WriteString(w, worst)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
			_, _ = io.Copy(w, &zeros{size: size})
		case r.Method == http.MethodPost:
			fmt.Fprint(w, "<CompleteMultipartUploadResult><Bucket>backups</Bucket></CompleteMultipartUploadResult>")
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"e"`)
		}
		return true
	})
	for _, answer := range []int{s3.LeastAnswer, s3.MostAnswer / 3, s3.MostAnswer} {
		o := v.options()
		o.PartBytes, o.AnswerBytes = 0, answer
		s := openWith(t, o)
		keepsWithin(t, s, size, s3.MemoryTimes*answer)
	}
}

// keepsWithin does each operation, on an object of a size, and wants it to hold no more than most.
func keepsWithin(t *testing.T, s *s3.Store, size int64, most int) {
	for what, f := range map[string]func() error{
		"put": func() error { return s.Put(t.Context(), "o", &zeros{size: size}, size) },
		"get": func() error {
			body, err := s.Get(t.Context(), "o", 0, -1)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, body)
			return errors.Join(err, body.Close())
		},
		"list": func() error {
			if _, _, err := s.List(t.Context(), "", "", 10); err == nil {
				return errors.New("the worst list was read")
			}
			return nil
		},
	} {
		var err error
		most := most
		if what != "list" {
			most = s3.OtherBytes
		}
		if took := allocated(func() { err = f() }); err != nil || took > uint64(most) {
			t.Errorf("a %s of %d bytes allocates %d KiB of %d: %v", what, size, took>>10, most>>10, err)
		} else {
			t.Logf("a %s allocates %d KiB of %d", what, took>>10, most>>10)
		}
	}
}
