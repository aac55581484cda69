package probe_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/objects/probe"
)

var begin = time.Unix(1e9, 0)

func clock() time.Time { return begin }

// odd is a place that does one thing otherwise.
type odd struct {
	*objectstest.Place
	put        func(name string, body io.ReadSeeker, size int64) error
	get        func() (io.ReadCloser, error)
	list       func(prefix string) ([]objects.Info, bool, error)
	remove     func() error
	refuses    bool
	refusesErr error
}

func (o *odd) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	if o.put != nil {
		return o.put(name, body, size)
	}
	return o.Place.Put(ctx, name, body, size)
}

func (o *odd) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if o.get != nil {
		return o.get()
	}
	return o.Place.Get(ctx, name, offset, length)
}

func (o *odd) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	if o.list != nil {
		return o.list(prefix)
	}
	return o.Place.List(ctx, prefix, after, limit)
}

func (o *odd) Delete(ctx context.Context, name string) error {
	if o.remove != nil {
		return o.remove()
	}
	return o.Place.Delete(ctx, name)
}

// RefusesOverwrite implements the interface that package probe looks for.
func (o *odd) RefusesOverwrite(context.Context, string, io.ReadSeeker, int64) (bool, error) {
	return o.refuses, o.refusesErr
}

// Ensure that a place without faults passes, and that nothing is left there.
func TestRun(t *testing.T) {
	place := &odd{Place: objectstest.NewPlace(1, clock), refuses: true}
	report := probe.Run(t.Context(), place, "x", clock)
	var steps []string
	for _, step := range report.Steps {
		steps = append(steps, step.Name)
	}
	if err := report.Err(); err != nil || len(report.Notes) > 0 || len(place.Names()) > 0 ||
		!slices.Equal(steps, []string{"list", "write", "read", "find", "keep", "delete"}) {
		t.Errorf("%v, %q, %q, %q", err, steps, report.Notes, place.Names())
	}
}

// Ensure that each fault ends the step that meets it, with its error, and that what was written is deleted all the same.
func TestRun_faults(t *testing.T) {
	denied := func() error { return objects.ErrDenied }
	for name, c := range map[string]struct {
		change func(o *odd)
		step   string
		want   error
		left   int
	}{
		"no list": {func(o *odd) {
			o.list = func(string) ([]objects.Info, bool, error) { return nil, false, objects.ErrNoPlace }
		}, "list", objects.ErrNoPlace, 0},
		"full": {func(o *odd) { o.SetCapacity(1) }, "write", objects.ErrFull, 0},
		"no read": {func(o *odd) { o.get = func() (io.ReadCloser, error) { return nil, objects.ErrDenied } }, "read",
			objects.ErrDenied, 0},
		"damaged": {func(o *odd) {
			o.get = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("?")), nil }
		}, "read", objects.ErrDamaged, 0},
		"replaces": {func(o *odd) { o.put = replace(o) }, "keep", objects.ErrDamaged, 0},
		"no proof": {func(o *odd) { o.refusesErr = objects.ErrBusy }, "keep", objects.ErrBusy, 0},
		"for ever": {func(o *odd) { o.remove = denied }, "delete", objects.ErrDenied, 1},
		"undead":   {func(o *odd) { o.remove = func() error { return nil } }, "delete", objects.ErrDamaged, 1},
	} {
		place := &odd{Place: objectstest.NewPlace(1, clock), refuses: true}
		c.change(place)
		report := probe.Run(t.Context(), place, "x", clock)
		if err := report.Err(); !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.step+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if got := place.Names(); len(got) != c.left {
			t.Errorf("%s: left %q", name, got)
		}
	}
}

// replace puts an object over one that is there.
func replace(o *odd) func(string, io.ReadSeeker, int64) error {
	return func(name string, body io.ReadSeeker, size int64) error {
		o.Remove(name)
		return o.Place.Put(context.Background(), name, body, size)
	}
}

// Ensure that what is worse than it could be is noted, and is no failure.
func TestRun_notes(t *testing.T) {
	for want, change := range map[string]func(o *odd){
		"If-None-Match": func(o *odd) { o.refuses = false },
		"differs": func(o *odd) {
			o.Place = objectstest.NewPlace(1, func() time.Time { return begin.Add(-2 * time.Minute) })
		},
		"does not name":     func(o *odd) { o.list = func(string) ([]objects.Info, bool, error) { return nil, false, nil } },
		"of earlier checks": func(o *odd) { _ = o.Place.Put(context.Background(), "probe/old", strings.NewReader("x"), 1) },
	} {
		place := &odd{Place: objectstest.NewPlace(1, clock), refuses: true}
		change(place)
		report := probe.Run(t.Context(), place, "x", clock)
		if err := report.Err(); err != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], want) {
			t.Errorf("%s: %q, %v", want, report.Notes, err)
		}
	}
}

// Ensure that a probe whose context ends deletes what it wrote.
func TestRun_interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	place := &odd{Place: objectstest.NewPlace(1, clock)}
	place.get = func() (io.ReadCloser, error) {
		cancel()
		return nil, ctx.Err()
	}
	report := probe.Run(ctx, place, "x", clock)
	if err := report.Err(); !errors.Is(err, context.Canceled) || len(place.Names()) > 0 {
		t.Errorf("%v, %q", err, place.Names())
	}
}
