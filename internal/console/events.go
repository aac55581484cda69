package console

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/console/page"
)

const (
	// liveKey in the query of a page asks for its live sections as server-sent events.
	liveKey = "live"
	// liveInterval is the least time between two renderings of a section.
	liveInterval = 2 * time.Second
	// livePerSecond is how many sections that differ are rendered each second for all who look, and twice that if some hosts
	// look at more than others: with a millisecond each they take two, or four, hundredths of a processor.
	livePerSecond = 20
	// liveAtMost ends a look, so that the browser begins again: its user may have lost a permission or the console be another.
	liveAtMost = 10 * time.Minute
	// livePatience is how long a browser may take to accept one event.
	livePatience = 10 * time.Second
)

// pace says how often live sections are rendered: the more of them differ, the more seldom. Each host has its part of
// livePerSecond: one with many looks makes its own more seldom, and not those of others.
type pace struct {
	mu    sync.Mutex
	all   looks
	hosts map[string]looks
}

// looks are how many look at each section.
type looks map[sectionKey]int

func (l looks) add(keys []sectionKey, n int) {
	for _, key := range keys {
		if l[key] += n; l[key] == 0 {
			delete(l, key)
		}
	}
}

func (p *pace) enter(host string, keys []sectionKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.all, p.hosts = looks{}, map[string]looks{}
	}
	if p.hosts[host] == nil {
		p.hosts[host] = looks{}
	}
	p.all.add(keys, 1)
	p.hosts[host].add(keys, 1)
}

func (p *pace) leave(host string, keys []sectionKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.add(keys, -1)
	if p.hosts[host].add(keys, -1); len(p.hosts[host]) == 0 {
		delete(p.hosts, host)
	}
}

// interval is the time between two renderings of a section for a host. Hosts that look at the same sections share them.
func (p *pace) interval(host string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	differ := min(len(p.all), len(p.hosts)*len(p.hosts[host]))
	return max(liveInterval, time.Duration(differ)*time.Second/livePerSecond)
}

// live sends the sections of a page that are live whenever they differ from those that were sent last.
func (c *Console) live(w http.ResponseWriter, r *http.Request, p *page.Page) {
	ctx, cancel := context.WithTimeout(r.Context(), liveAtMost)
	defer cancel()
	l := c.lookAt(r.WithContext(ctx), p)
	var keys []sectionKey
	for i := range p.Sections {
		if s := &p.Sections[i]; s.Live {
			keys = append(keys, l.key(s))
		}
	}
	host := hostOf(r)
	c.pace.enter(host, keys)
	defer c.pace.leave(host, keys)
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{console: c, request: r, out: w, conn: http.NewResponseController(w), seed: maphash.MakeSeed(),
		sent: map[string]uint64{}}
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		interval := c.pace.interval(host)
		sections, login := c.load(l, true, interval/2)
		if login {
			s.event("login", nil)
			return
		}
		for i := range sections {
			if ctx.Err() == nil {
				s.section(p, &sections[i])
			}
		}
		if s.event("at", []byte(page.Moment(time.Now().UnixMilli()))); s.err != nil {
			return
		}
		wait.Reset(interval)
	}
}

// stream is the answer to one look. It does nothing after an error.
type stream struct {
	console *Console
	request *http.Request
	out     http.ResponseWriter
	conn    *http.ResponseController
	seed    maphash.Seed
	sent    map[string]uint64 // the hash of what was sent last, by section
	err     error
}

func (s *stream) section(p *page.Page, of *section) {
	c := s.console
	var out bytes.Buffer
	if err := c.looks.of(p).ExecuteTemplate(&out, "section", of); err != nil {
		c.fault(&c.broken, "the console cannot show a section", "page", p.Path, "section", of.ID, "err", err)
		return
	}
	hash := maphash.Bytes(s.seed, out.Bytes())
	if s.sent[of.ID] == hash {
		return
	}
	s.sent[of.ID] = hash
	s.event("section", out.Bytes())
}

// event sends one event. Each line of its data is a line of the stream (HTML, section 9.2.6).
func (s *stream) event(name string, data []byte) {
	if s.err != nil {
		return
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "event: %s\n", name)
	for line := range bytes.Lines(append(data, '\n')) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	giveBack, err := s.console.options.Lend(s.request, out.Len())
	if err != nil {
		s.err = err
		return
	}
	defer giveBack()
	if s.err = s.conn.SetWriteDeadline(time.Now().Add(livePatience)); s.err != nil {
		return
	}
	if _, s.err = s.out.Write(out.Bytes()); s.err == nil {
		s.err = s.conn.Flush()
	}
}
