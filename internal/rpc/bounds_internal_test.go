package rpc

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that a host that keeps asking for scans of the whole store, or for other leaders, neither takes all places nor makes
// others wait until all its own calls are served.
func TestBounds_scansOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, most := range map[string]int{"scans": maxScans, "moves": maxMoves, "deleted": maxDeletedCalls} {
			turns := turnsOf(most)
			var ends []func()
			served := make(chan func(), maxHostTurns)
			refused := 0
			for range 2 * (maxScans + maxTurnsWaited) {
				go func() {
					leave, err := turns.Enter(t.Context(), "hostile", 1)
					if errors.Is(err, admission.ErrQueueFull) {
						refused++
						return
					}
					served <- leave
				}()
				synctest.Wait()
			}
			if want := 2*(maxScans+maxTurnsWaited) - maxHostTurns; refused != want {
				t.Errorf("%s: %d calls of a host were refused, want %d", name, refused, want)
			}
			other := make(chan error, 1)
			go func() {
				leave, err := turns.Enter(t.Context(), "other", 1)
				if other <- err; err == nil {
					leave()
				}
			}()
			synctest.Wait()
			for len(ends) < 2 {
				leave := <-served
				leave()
				ends = append(ends, leave)
				synctest.Wait()
			}
			select {
			case err := <-other:
				if err != nil {
					t.Errorf("%s: another host was refused: %v", name, err)
				}
			default:
				t.Errorf("%s: another host waits though two calls before it have ended", name)
			}
			for len(ends) < maxHostTurns {
				leave := <-served
				leave()
				ends = append(ends, leave)
			}
		}
	})
}
