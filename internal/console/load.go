package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/logpace"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	// patience is how long a page may take. It leaves the rest of two seconds to the network.
	patience = 1800 * time.Millisecond
	// knownFor is how long a section may be shown as it was: its user may have lost a permission since.
	knownFor = 15 * time.Minute
	// maxSectionBytes bounds a section as it is sent.
	maxSectionBytes = 1 << 20
)

// section is one section as it is shown.
type section struct {
	ID, Title string
	Live      bool
	Wide      bool
	Body      template.HTML // made by templates of html/template
	Command   string
	Heading   string // of the fault; empty: there is none
	Fault     string
	Known     string // since when the body is known, if there is a fault; empty: it is not known
}

// look is one look at a page.
type look struct {
	page    *page.Page
	request *http.Request
	session session
	who     string // part of the key of all that is kept for this user
	url     string // the same, of this page with its query
}

func (c *Console) lookAt(r *http.Request, p *page.Page) *look {
	l := &look{page: p, request: r, session: c.sessionOf(r)}
	sum := sha256.Sum256([]byte(l.session.user + "\x00" + l.session.token + "\x00" + certified(r)))
	l.who = string(sum[:])
	if p != nil {
		l.url = r.URL.Path + "?" + l.query().Encode()
	}
	return l
}

// load loads the sections of a page at once, those that are live only, or all. It ends within patience. login says that a user
// must log in first.
func (c *Console) load(l *look, live bool, age time.Duration) (all []section, login bool) {
	ctx, cancel := context.WithTimeout(l.request.Context(), patience)
	defer cancel()
	results := make([]*section, len(l.page.Sections))
	asks := make([]bool, len(results))
	var waits []func()
	for i := range l.page.Sections {
		s := &l.page.Sections[i]
		if live && !s.Live {
			continue
		}
		waits = append(waits, page.Go(func() { results[i], asks[i] = c.section(ctx, l, s, age) }))
	}
	for _, wait := range waits {
		wait()
	}
	for i, s := range results {
		login = login || asks[i]
		if s != nil {
			all = append(all, *s)
		}
	}
	return all, login
}

// section loads one section; nil: it is not shown.
func (c *Console) section(ctx context.Context, l *look, s *page.Section, age time.Duration) (shown *section, login bool) {
	shown = &section{ID: s.ID, Title: s.Title, Live: s.Live, Wide: s.Wide}
	defer func() {
		if err := c.caught(recover(), l.page.Path, s.ID); err != nil {
			shown, login = &section{ID: s.ID, Title: s.Title, Live: s.Live, Wide: s.Wide}, false
			shown.Heading, shown.Fault = explain(err, patience)
		}
	}()
	key := l.key(s)
	body, err := c.known.load(ctx, key, age, func() ([]byte, error) { return c.render(l, s) })
	switch {
	case errors.Is(err, page.ErrHidden):
		return nil, false
	case err != nil && asksForLogin(err):
		return nil, true
	case err != nil:
		shown.Heading, shown.Fault = explain(err, patience)
		if old, at, ok := c.known.last(key); ok && page.Passes(err) && time.Since(at) < knownFor {
			body, shown.Known = old, page.Moment(at.UnixMilli())
		}
	}
	shown.Body = template.HTML(body) // #nosec: rendered by html/template
	if s.Command != nil {
		shown.Command = s.Command(c.requestOf(l))
	}
	return shown, false
}

// caught makes an error of a panic in a part of a page, and logs it: a fault of a page must not end the member. One of the
// member, in a call that the page makes, does (package inproc).
func (c *Console) caught(cause any, path, part string) error {
	if cause == nil {
		return nil
	}
	c.fault(&c.panics, "a page of the console failed", "page", path, "part", part, "panic", fmt.Sprint(cause), "stack",
		string(debug.Stack()))
	return errPanic
}

var errPanic = status.Error(codes.Internal, "This section cannot be shown: the log of the member says why. The others can.")

// fault logs that something cannot be shown, at most once a second: whoever looks may ask for it again and again.
func (c *Console) fault(pace *logpace.Pace, message string, args ...any) {
	if suppressed, ok := pace.Next(time.Now()); ok {
		c.options.Logger.Error(message, append(args, "suppressed", suppressed)...)
	}
}

// key identifies a section of this page for this user.
func (l *look) key(s *page.Section) sectionKey {
	return sectionKey{l.who, l.url, s.ID}
}

// query is that of the page, whether it is looked at once or followed.
func (l *look) query() url.Values {
	query := l.request.URL.Query()
	query.Del(liveKey)
	return query
}

// render loads the data of a section and renders it. Nobody may wait for it any more: it has a deadline of its own.
func (c *Console) render(l *look, s *page.Section) (body []byte, err error) {
	defer func() {
		if failed := c.caught(recover(), l.page.Path, s.ID); failed != nil {
			body, err = nil, failed
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.request.Context()), patience)
	defer cancel()
	leave, err := c.turn(ctx, l.request)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, done := c.options.Enter(l.request.WithContext(ctx))
	defer done()
	ctx = l.session.with(ctx)
	data, err := s.Load(ctx, c.requestOf(l))
	if err != nil {
		return nil, err
	}
	select {
	case c.renders <- struct{}{}:
		defer func() { <-c.renders }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var out bytes.Buffer
	if err := c.looks.of(l.page).ExecuteTemplate(&limited{&out}, s.Template, data); err != nil {
		c.fault(&c.broken, "the console cannot show a section", "page", l.page.Path, "section", s.ID, "err", err)
		return nil, err
	}
	return out.Bytes(), nil
}

// requestOf is what a page is told of a request.
func (c *Console) requestOf(l *look) *page.Request {
	r := &page.Request{Conn: c.reads, User: l.session.name(l.request), Certified: l.session.user == "",
		Admin: c.options.Admin, Query: l.query(), Now: time.Now(), Endpoint: c.options.Endpoint, Member: c.options.Member}
	if l.page != nil && strings.HasSuffix(l.page.Path, "/") {
		r.Below = strings.TrimPrefix(l.request.URL.Path, l.page.Path)
	}
	return r
}

// limited refuses to grow beyond what a section may have.
type limited struct{ *bytes.Buffer }

var errTooLong = status.Error(codes.ResourceExhausted, "This has more than a page may have (1 MiB): ask for less of it.")

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxSectionBytes {
		return 0, errTooLong
	}
	return l.Buffer.Write(p)
}
