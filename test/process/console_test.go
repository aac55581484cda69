package process_test

import (
	"bufio"
	"context"
	"flag"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
)

// consoleTime is how long `make console-cost` looks.
var consoleTime = flag.Duration("console-cost", 0, "for how long TestConsole_cost looks at each page; 0: until each look had two events")

var processorSeconds = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)

// consolePages are the live pages that are looked at.
var consolePages = []string{"/", "/members", "/changes", "/traffic", "/top", "/alarms", "/backups"}

// TestConsole_cost opens 200 consoles at one member, and wants each to be told what happens. With -console-cost it measures the
// processor time that they take.
func TestConsole_cost(t *testing.T) {
	t.Parallel()
	const consoles = 200
	address := testnet.Address(t)
	e := startVoters(t, 3)
	n := e.nodes[0]
	n.kill()
	n.flags = append(n.flags, "--listen-console-urls=http://"+address)
	e.launch(n, "existing")
	e.waitReady(n)

	processor := func() float64 {
		found := processorSeconds.FindStringSubmatch(e.metrics(n))
		if found == nil {
			t.Fatal("the member does not tell process_cpu_seconds_total")
		}
		seconds, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return seconds
	}
	rest := max(*consoleTime, time.Millisecond)
	idle := processor()
	last(rest)
	idle = processor() - idle

	ctx, cancel := context.WithCancel(t.Context())
	var looks sync.WaitGroup
	var told, bytes atomic.Int64
	ready := make(chan struct{}, 2*consoles)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: consoles}}
	for i := range consoles {
		looks.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+consolePages[i%len(consolePages)]+"?live", nil)
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := client.Do(request)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", request.URL, answer.Status)
				return
			}
			lines := bufio.NewScanner(answer.Body)
			lines.Buffer(nil, 2<<20)
			for seen := 0; lines.Scan(); {
				bytes.Add(int64(len(lines.Bytes())))
				if strings.HasPrefix(lines.Text(), "event: at") {
					told.Add(1)
					if seen++; seen <= 2 {
						ready <- struct{}{}
					}
				}
			}
		})
	}
	for range 2 * consoles {
		select {
		case <-ready:
		case <-time.After(patience):
			t.Fatalf("after %v the consoles were told %d times", patience, told.Load())
		}
	}
	if *consoleTime > 0 {
		before, sent, began := processor(), bytes.Load(), time.Now()
		last(rest)
		took := time.Since(began).Seconds()
		share := 100 * (processor() - before - idle*took/rest.Seconds()) / took
		t.Logf("%d consoles take %.2f %% of a processor, and %.1f KiB/s; without them the member took %.2f %%", consoles, share,
			float64(bytes.Load()-sent)/1024/took, 100*idle/rest.Seconds())
	}
	cancel()
	looks.Wait()
}
