package console_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
)

// from makes a request one of a host.
func from(host string) func(*http.Request) {
	return func(r *http.Request) {
		*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}))
		r.RemoteAddr = host + ":1"
	}
}

// slowly is a section that hangs if the query says so.
func slowly(ctx context.Context, r *page.Request) (any, error) {
	if r.Query.Has("slow") {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return "it is quick", nil
}

// Ensure that a host with many loads that hang keeps no other host from a page.
func TestConsole_turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := serve(t, &member{}, sample(slowly))
		refused := make(chan bool, 400)
		for i := range cap(refused) {
			go func() {
				w := get(h, fmt.Sprintf("/sample?slow=%d", i), from("10.0.0.2"))
				refused <- strings.Contains(w.Body.String(), "Too much is being loaded for your address")
			}()
		}
		synctest.Wait()
		began := time.Now()
		w := get(h, "/sample", from("10.0.0.3"))
		if took := time.Since(began); took > 0 || !strings.Contains(w.Body.String(), "it is quick") {
			t.Errorf("after %v another host got %s", took, w.Body.String())
		}
		n := 0
		for range cap(refused) {
			if <-refused {
				n++
			}
		}
		if n != cap(refused)-256 {
			t.Errorf("%d loads were refused", n)
		}
	})
}

// Ensure that a host with many looks that differ makes those of others no rarer.
func TestConsole_live_hosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := serve(t, &member{}, sample(slowly))
		const looks = 400
		done := make(chan []string)
		for i := range looks {
			go func() { done <- watch(h, fmt.Sprintf("/sample?live&look=%d", i), time.Minute, from("10.0.0.2")) }()
		}
		synctest.Wait()
		count := func(events []string) (n int) {
			for _, e := range events {
				if e == "at" {
					n++
				}
			}
			return n
		}
		if n := count(watch(h, "/sample?live", 21*time.Second, from("10.0.0.3"))); n < 10 {
			t.Errorf("another host was told %d times in 21 seconds", n)
		}
		sum := 0
		for range looks {
			sum += count(<-done)
		}
		if sum < looks || sum > 60*20+looks {
			t.Errorf("%d looks of one host were served %d times in a minute", looks, sum)
		}
	})
}
