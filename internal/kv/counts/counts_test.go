package counts_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/counts"
)

func TestCounts_Timed(t *testing.T) {
	c := counts.New()
	put, grant := &kv.Command{Put: &kv.PutOp{}}, &kv.Command{LeaseGrant: &kv.LeaseGrantOp{}}
	c.Applied(put, nil)
	c.Applied(put, nil)
	c.Applied(put, errors.New("no"))
	c.Applied(grant, nil)
	c.Timed(4 * time.Second)
	c.Timed(time.Hour) // no command was applied since
	c.Applied(grant, nil)
	c.Timed(3 * time.Second)
	for _, row := range []struct {
		op      counts.Op
		success bool
		count   uint64
		sum     float64
	}{
		{counts.Put, true, 2, 2}, {counts.Put, false, 1, 1}, {counts.LeaseGrant, true, 2, 4}, {counts.Txn, true, 0, 0},
	} {
		count, sum, _ := c.Durations(row.op, row.success).Read()
		if count != row.count || sum != row.sum {
			t.Errorf("%v, success %t: got %d commands in %v s, want %d in %v s", row.op, row.success, count, sum, row.count,
				row.sum)
		}
	}
}

func TestCounts_Done(t *testing.T) {
	c := counts.New()
	c.Done(1, 0, 0)
	c.Done(2, 1, 3)
	if c.Puts.Load() != 3 || c.Deletes.Load() != 1 || c.Ranges.Load() != 3 || c.Txns.Load() != 1 {
		t.Errorf("got %d puts, %d deletes, %d ranges, %d txns; want 3, 1, 3, 1", c.Puts.Load(), c.Deletes.Load(),
			c.Ranges.Load(), c.Txns.Load())
	}
}

// Ensure that each kind of command has a name of its own.
func TestOpOf(t *testing.T) {
	seen := map[string]bool{}
	for _, op := range counts.Ops() {
		if op.String() == "" || seen[op.String()] {
			t.Errorf("kind %d has the name %q, which another one has", op, op)
		}
		seen[op.String()] = true
	}
	if got := counts.OpOf(&kv.Command{}); got != counts.Unknown {
		t.Errorf("an empty command is a %v", got)
	}
	kinds := 0
	for i := range reflect.TypeFor[kv.Command]().NumField() {
		cmd := kv.Command{}
		field := reflect.ValueOf(&cmd).Elem().Field(i)
		if field.Kind() != reflect.Pointer { // the user
			continue
		}
		kinds++
		field.Set(reflect.New(field.Type().Elem()))
		if counts.OpOf(&cmd) == counts.Unknown {
			t.Errorf("a command with %s has no name", reflect.TypeFor[kv.Command]().Field(i).Name)
		}
	}
	if kinds < 10 {
		t.Errorf("found %d kinds of commands", kinds)
	}
}
