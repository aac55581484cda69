package offclock_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/interpose"
	"github.com/quorate/quorate/test/offclock"
)

const child = "OFFCLOCK_TEST"

func TestMain(m *testing.M) {
	interpose.Main()
	if os.Getenv(child) != "" {
		begun := time.Now()
		<-time.After(20 * time.Millisecond)
		fmt.Println(begun.UnixMilli(), time.Since(begun).Milliseconds())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Ensure that a program sees the time of day of its clock, measures as all do, and is asked for each look.
func TestClock(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []time.Duration{0, 10 * time.Second, -3 * time.Hour} {
		command := exec.Command(self)
		command.Env = append(os.Environ(), child+"=1")
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		clock := &offclock.Clock{}
		clock.Set(off)
		begun := time.Now()
		if err := clock.Start(command); errors.Is(err, interpose.ErrNoListener) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(command.Wait(), clock.Err()); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		fields := strings.Fields(out.String())
		if len(fields) != 2 {
			t.Fatalf("it says %q", out.String())
		}
		said, _ := strconv.ParseInt(fields[0], 10, 64)
		took, _ := strconv.ParseInt(fields[1], 10, 64)
		if real := time.UnixMilli(said).Add(-off); real.Before(begun.Truncate(time.Millisecond)) || real.After(time.Now()) {
			t.Errorf("off by %v: it says that it was %v at %v", off, time.UnixMilli(said), begun)
		}
		if took < 20 || took > 10_000 {
			t.Errorf("off by %v: it measured %d ms", off, took)
		}
		if clock.Looks() == 0 {
			t.Errorf("off by %v: it looked at another clock", off)
		}
	}
}
