package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
)

const (
	dialTimeout = 10 * time.Second
	bufferBytes = 32 << 10
	mostConns   = 64
)

func newTransport(config *tls.Config) *http.Transport {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        mostIdle,
		MaxConnsPerHost:        mostConns,
		MaxResponseHeaderBytes: mostHeader,
		ReadBufferSize:         bufferBytes,
		WriteBufferSize:        bufferBytes,
		// An object's body is its bytes, whatever they are encoded as.
		DisableCompression: true,
	}
}

// wantsBody is the context key of a request whose answer is the body of an object, and wantsList of one whose answer is a list:
// the value is answers.
type (
	wantsBody struct{}
	wantsList struct{}
)

// answers counts what came for a list.
type answers struct {
	all   int // answers
	lists int // those that were lists, to their end
}

// ErrStalled means that a request made no progress for too long.
var errStalled = fmt.Errorf("%w: no byte moved for too long", objects.ErrUnreachable)

// errTooLarge means that an answer is larger than one that a server of S3 gives.
var errTooLarge = fmt.Errorf("%w: an answer is larger than it may be", objects.ErrDamaged)

// guarded ends requests that make no progress, and bounds answers that the library holds as a whole.
type guarded struct {
	within  http.RoundTripper
	stall   time.Duration
	most    int // bytes of an answer that is a list
	perPage int // objects of a list
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	w := &watch{stall: g.stall, timer: time.AfterFunc(g.stall, func() { cancel(errStalled) })}
	inner := request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		inner.Body = &sent{ReadCloser: request.Body, watch: w}
	}
	answer, err := g.within.RoundTrip(inner)
	w.timer.Stop()
	if err != nil {
		err = w.explain(ctx, err)
		cancel(nil)
		return nil, err
	}
	answer.Header.Del("Set-Cookie") // the library would keep all that come
	body := &received{body: answer.Body, watch: w, ctx: ctx, cancel: cancel, left: min(g.most, LeastAnswer),
		entries: counter{word: []byte("Contents"), most: entriesOf(g.perPage)},
		tags:    counter{word: []byte("<"), most: tagsOf(g.perPage)}, roots: counter{word: []byte("ListBucketResult")}}
	if body.answers, _ = request.Context().Value(wantsList{}).(*answers); body.answers != nil {
		body.answers.all++
		body.left = g.most
	}
	if request.Context().Value(wantsBody{}) != nil && answer.StatusCode/100 == 2 {
		body.left = -1
	}
	answer.Body = body
	return answer, nil
}

// watch is the timer of a request, which runs while the other side is waited for.
type watch struct {
	stall time.Duration
	timer *time.Timer
}

// explain gives the reason for which a request was ended.
func (*watch) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// sent is the body of a request. While it is read, the server is not waited for.
type sent struct {
	io.ReadCloser
	watch *watch
}

// Read implements io.Reader.
func (s *sent) Read(p []byte) (int, error) {
	s.watch.timer.Stop()
	n, err := s.ReadCloser.Read(p)
	s.watch.timer.Reset(s.watch.stall)
	return n, err
}

// received is the body of an answer.
type received struct {
	body    io.ReadCloser
	watch   *watch
	ctx     context.Context
	cancel  context.CancelCauseFunc
	left    int // bytes that may still come; negative without a bound
	entries counter
	tags    counter
	roots   counter
	answers *answers // nil unless it should be a list
}

// Read implements io.Reader.
func (r *received) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errTooLarge
	}
	if r.left > 0 {
		p = p[:min(len(p), r.left)]
	}
	r.watch.timer.Reset(r.watch.stall)
	n, err := r.body.Read(p)
	r.watch.timer.Stop()
	if r.left > 0 {
		r.left -= n
		r.entries.count(p[:n])
		r.tags.count(p[:n])
		if r.entries.found > r.entries.most || r.tags.found > r.tags.most {
			return 0, errTooLarge
		}
		r.countRoots(p[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.watch.explain(r.ctx, err)
	}
	return n, err
}

// countRoots notes a list whose element begins and ends.
func (r *received) countRoots(p []byte) {
	const whole = 2
	if r.answers == nil || r.roots.found >= whole {
		return
	}
	if r.roots.count(p); r.roots.found >= whole {
		r.answers.lists++
	}
}

// Close implements io.Closer.
func (r *received) Close() error {
	r.watch.timer.Stop()
	err := r.body.Close()
	r.cancel(nil)
	return err
}

// entriesOf is how often the name of an object's element may come in a list of so many objects: twice for each, and a few times
// elsewhere. The library makes a large value of each, however small it is.
func entriesOf(objects int) int { return 2*objects + 10 }

// tagsOf is how many tags a list of so many objects may have: an object of a list has twenty.
func tagsOf(objects int) int { return 30*objects + 100 }

// counter counts a word in an answer that comes in pieces.
type counter struct {
	word  []byte
	found int
	most  int    // that there may be
	tail  []byte // the last bytes, too few for the word
}

func (c *counter) count(p []byte) {
	keep := len(c.word) - 1
	joined := append(c.tail, p[:min(len(p), keep)]...)
	c.found += bytes.Count(joined, c.word) + bytes.Count(p, c.word)
	if len(p) >= keep {
		c.tail = append(c.tail[:0], p[len(p)-keep:]...)
		return
	}
	c.tail = append([]byte(nil), joined[max(0, len(joined)-keep):]...)
}
