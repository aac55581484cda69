package browser

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shots is where pictures go: `make screenshots` names docs/pictures/console.
var shots = flag.String("shots", "", "a directory for the pictures of docs/console.md, which has nothing else; empty: none are made")

// pictures are those of docs/console.md.
var pictures = []struct {
	name, path string
	as         look
}{
	{"verdict-light", "/", looks[0]},
	{"verdict-narrow", "/", looks[2]},
	{"members-light", "/members", looks[0]},
	{"members-narrow", "/members", looks[2]},
	{"traffic-dark", "/traffic", looks[1]},
	{"top-light", "/top", looks[0]},
	{"replace-light", "/changes/replace?member=m3&name=m4&peer-urls=http://10.0.4.9:2380", looks[0]},
	{"key-light", podPage, looks[0]},
	{"undelete-light", "/keys/undelete?prefix=%2Fgone%2F", looks[0]},
	{"limits-light", "/limits", looks[0]},
	{"audit-light", "/audit", looks[0]},
	{"encryption-light", "/encryption", looks[0]},
	{"alarms-dark", "/alarms", looks[1]},
}

// loadedFor is how long clients write before the pictures are made: charts have a point each ten seconds.
const loadedFor = 90 * time.Second

// Ensure that pages can be shown as docs/console.md does: with a load, and one member that is slow.
func TestPictures(t *testing.T) {
	if *shots == "" {
		t.Skip("pictures are made by `make screenshots`")
	}
	browser, c := open(t), start(t)
	c.fill()
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	clients.Go(func() { c.load(ctx) })
	defer clients.Wait()
	defer cancel()
	<-time.After(loadedFor)
	former, err := filepath.Glob(filepath.Join(*shots, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range former {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(*shots, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		t.Run(p.name, func(t *testing.T) { // a tab each, which is closed then: a browser has six connections to a host
			b := newTab(t, browser, p.as)
			b.visit("http://" + c.members[0].console + p.path)
			b.shoot(filepath.Join(*shots, p.name+".png"), p.as)
			b.calm(p.path)
		})
	}
}

// mostHigh is how many pixels of a page a picture has.
const mostHigh = 1400

// shoot keeps a picture of a page, as wide as people look at it, and as high as it is.
func (b *tab) shoot(name string, as look) {
	b.t.Helper()
	width := min(as.width, 1080)
	resize := func(height int64) {
		call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height,
			DeviceScaleFactor: 1})
	}
	resize(200)
	high := eval[int64](b, `Math.ceil(document.documentElement.scrollHeight)`)
	resize(min(high, mostHigh))
	eval[int](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`)
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(name, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// load writes through each member until the context ends, and lets the third one stand still now and then.
func (c *cluster) load(ctx context.Context) {
	var clients sync.WaitGroup
	for i, m := range c.members {
		for _, put := range []string{
			`{"key":"L29yZGVycy8x","value":"djE="}`, `{"key":"L3JlZ2lzdHJ5L3BvZHMvZGVmYXVsdC9wb2QtMDE=","value":"e30="}`,
		} {
			clients.Go(func() { c.write(ctx, m, put, time.Duration(20+10*i)*time.Millisecond) })
		}
	}
	slow := c.members[len(c.members)-1].process.Process
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for stopped := false; ctx.Err() == nil; <-tick.C {
		signal := syscall.SIGSTOP
		if stopped {
			signal = syscall.SIGCONT
		}
		if err := slow.Signal(signal); err != nil {
			c.t.Error(err)
			return
		}
		stopped = !stopped
	}
	_ = slow.Signal(syscall.SIGCONT)
	clients.Wait()
}

// write puts a key by the gateway, at most once in a pause.
func (c *cluster) write(ctx context.Context, m *member, put string, pause time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/v3/kv/put", m.client),
			bytes.NewReader([]byte(put)))
		if err != nil {
			c.t.Error(err)
			return
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
		}
		<-tick.C
	}
}
