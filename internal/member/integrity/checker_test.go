package integrity_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/integrity"
)

// leader is the checker of the leader of three members that answer by a function, and whom it marked. It has applied 90
// entries.
func leader(
	t *testing.T, pace integrity.Pace, answer func(id consensus.MemberID, at uint64) integrity.Answer,
) (c *integrity.Checker, marked *[]consensus.MemberID) {
	t.Helper()
	data := datatest.Create(t, datatest.Options(), 1)
	t.Cleanup(func() { datatest.Close(t, data) })
	if _, err := data.Machine.Apply(datatest.Puts(1, 90, 2)); err != nil {
		t.Fatal(err)
	}
	var stores datadir.Stores
	stores.Set(data.Generation)
	marked = new([]consensus.MemberID)
	config, _ := data.Machine.Config()
	return integrity.New(integrity.Options{
		Self: 1, Stores: &stores, Pace: pace, Logger: slog.New(slog.DiscardHandler),
		Ports: integrity.Ports{
			Leads:     func() bool { return true },
			Config:    func() consensus.Config { return config },
			ReadIndex: func(context.Context) error { return nil },
			Propose: func(_ context.Context, command *kv.Command) (kv.Result, error) {
				*marked = append(*marked, consensus.MemberID(command.Alarm.Member))
				return kv.Result{}, nil
			},
			Ask: func(_ context.Context, id consensus.MemberID, _ integrity.Kind, q integrity.Question) (integrity.Answer, error) {
				return answer(id, q.At), nil
			},
			Spare: func([]consensus.MemberID) {},
		},
	}), marked
}

// Ensure that members are compared at an index that all of them have applied, and that the one that differs is marked.
func TestChecker_Run_marks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied := map[consensus.MemberID]uint64{1: 90, 2: 70, 3: 80}
		var asked []uint64 // of the leader
		c, marked := leader(t, integrity.Pace{Chains: time.Second}, func(id consensus.MemberID, at uint64) integrity.Answer {
			if id == 1 {
				asked = append(asked, at)
			}
			answer := integrity.Answer{Known: true, At: min(at, applied[id])}
			if answer.Sum = answer.At; id == 3 {
				answer.Sum++
			}
			return answer
		})
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked, []uint64{90, 70}) || !slices.Equal(*marked, []consensus.MemberID{3}) {
			t.Errorf("asked at %v, marked %v; want member 3 marked at 70", asked, *marked)
		}
		if counts := c.Counts(); counts != (integrity.Counts{Compared: 1, Different: 1}) {
			t.Errorf("counted %+v", counts)
		}
	})
}

// Negative control: without a pace nothing is asked.
func TestChecker_Run_off(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, marked := leader(t, integrity.Pace{}, func(id consensus.MemberID, at uint64) integrity.Answer {
			return integrity.Answer{Known: true, At: at, Sum: uint64(id)}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); err != nil || c.Counts().Compared != 0 || len(*marked) != 0 {
			t.Errorf("%v, %+v, marked %v", err, c.Counts(), *marked)
		}
	})
}
