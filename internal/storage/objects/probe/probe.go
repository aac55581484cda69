// Package probe tries a place for objects as a backup would use it: it writes a small object, reads it, looks for it in a list,
// tries to overwrite it, and deletes it.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
)

// Dir is where probes lie, at the place: a name that no backup uses.
const Dir = "probe"

const prefix = Dir + "/"

// removeTimeout is how long the end of a probe may take that was interrupted.
const removeTimeout = 30 * time.Second

// mostSkew is how far the clock of a place may differ before it is told.
const mostSkew = time.Minute

// Step is one thing that was tried.
type Step struct {
	Name string
	Took time.Duration
	Err  error
}

// Report is what was found.
type Report struct {
	Steps []Step
	// Notes are sentences about a place that can be used, and is worse than others.
	Notes []string
}

// Err returns the error of the step that failed, or nil.
func (r *Report) Err() error {
	for _, step := range r.Steps {
		if step.Err != nil {
			return fmt.Errorf("%s: %w", step.Name, step.Err)
		}
	}
	return nil
}

// run is a probe that is under way.
type run struct {
	store   objects.Store
	now     func() time.Time
	name    string
	content string
	report  Report
}

// Run tries a place. The name is of a probe that nobody else makes. An object that was written is deleted, whatever failed
// after it.
func Run(ctx context.Context, store objects.Store, name string, now func() time.Time) *Report {
	r := &run{store: store, now: now, name: prefix + name,
		content: "This object was written by `quorate backup check`, and can be deleted.\n" + name + "\n"}
	if r.step(ctx, "list", r.list) && r.step(ctx, "write", r.write) {
		_ = r.step(ctx, "read", r.read) && r.step(ctx, "find", r.find) && r.step(ctx, "keep", r.keep)
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		r.step(rest, "delete", r.remove)
	}
	return &r.report
}

// step does one thing, and reports whether it succeeded.
func (r *run) step(ctx context.Context, name string, f func(context.Context) error) bool {
	begin := r.now()
	err := f(ctx)
	r.report.Steps = append(r.report.Steps, Step{Name: name, Took: r.now().Sub(begin), Err: err})
	return err == nil
}

func (r *run) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

// list comes first: its errors say more than those of other operations.
func (r *run) list(ctx context.Context) error {
	found, _, err := r.store.List(ctx, prefix, "", objects.MaxList)
	if len(found) > 0 {
		r.note("%d probes of earlier checks lie at the place, the first is %s: they can be deleted.", len(found), found[0].Name)
	}
	return err
}

func (r *run) write(ctx context.Context) error {
	return objects.PutOnce(ctx, r.store, r.name, strings.NewReader(r.content), int64(len(r.content)))
}

// read reads the object as a whole and in part.
func (r *run) read(ctx context.Context) error {
	same, err := objects.Compare(ctx, r.store, r.name, strings.NewReader(r.content), int64(len(r.content)))
	if err != nil {
		return err
	}
	if !same {
		return objects.ErrDamaged
	}
	const at, length = 5, 6
	body, err := r.store.Get(ctx, r.name, at, length)
	if err != nil {
		return err
	}
	part, err := io.ReadAll(io.LimitReader(body, length+1))
	if err := errors.Join(err, body.Close()); err != nil {
		return err
	}
	if string(part) != r.content[at:at+length] {
		return fmt.Errorf("a range: %w", objects.ErrDamaged)
	}
	return nil
}

// find asks for the object's time, and looks for it in a list, which may be late.
func (r *run) find(ctx context.Context) error {
	info, err := r.store.Stat(ctx, r.name)
	if err != nil {
		return err
	}
	if skew := r.now().Sub(info.Time); skew.Abs() > mostSkew {
		r.note("The clock of the place differs from that of this machine by %s.", skew.Abs().Round(time.Second))
	}
	found, _, err := r.store.List(ctx, r.name, "", 1)
	if err == nil && (len(found) != 1 || found[0].Name != r.name) {
		r.note("The list of the place does not name an object that was just written.")
	}
	return err
}

// keep wants the place to keep the object when another is written under its name.
func (r *run) keep(ctx context.Context) error {
	const other = "other bytes"
	if err := r.store.Put(ctx, r.name, strings.NewReader(other), int64(len(other))); !errors.Is(err, objects.ErrExists) {
		if err == nil {
			err = fmt.Errorf("%w: it took another object under a name that has one", objects.ErrDamaged)
		}
		return err
	}
	if c, ok := r.store.(conditional); ok {
		refuses, err := c.RefusesOverwrite(ctx, r.name, strings.NewReader(r.content), int64(len(r.content)))
		if err != nil {
			return err
		}
		if !refuses {
			r.note("The server ignores `If-None-Match: *`: of two writers that give one name at once, the later one wins. " +
				"Backups are safe all the same: a name has a sum of what lies under it.")
		}
	}
	return r.read(ctx)
}

// conditional is a place whose server may refuse to write over an object, or not.
type conditional interface {
	RefusesOverwrite(ctx context.Context, name string, body io.ReadSeeker, size int64) (bool, error)
}

func (r *run) remove(ctx context.Context) error {
	if err := r.store.Delete(ctx, r.name); err != nil {
		return err
	}
	_, err := r.store.Stat(ctx, r.name)
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return nil
	case err == nil:
		return fmt.Errorf("%w: the object is there after it was deleted", objects.ErrDamaged)
	}
	return err
}
