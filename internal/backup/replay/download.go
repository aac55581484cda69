package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/objects"
)

// download reads the files of a base into the directory, several at once. Copies of another store are removed before: they
// hold the disk.
func (r *replaying) download(m *backup.Manifest) error {
	if err := errors.Join(r.copies.drop(), r.FS.RemoveAll(r.Dir), r.FS.MkdirAll(r.Dir, 0o700)); err != nil {
		return err
	}
	if err := r.room(m); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	var mu sync.Mutex // guards the progress
	turns := make(chan struct{}, r.Parallel)
	for i := range m.Files {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-turns }()
			f := &m.Files[i]
			err := fetch.File(ctx, r.Store, r.plan.Base.Cluster, f, func() (io.WriteCloser, error) {
				return r.create(r.FS.PathJoin(r.Dir, f.Name))
			})
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			r.told(f.Size)
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !r.Durable {
		return nil
	}
	return durable.SyncDir(r.FS, r.Dir)
}

// room asks for room for the files of a base. Where there is none it looks whether they are as large as the manifest says,
// which somebody may have made up: then it returns a fetch.DamageError, and else a backup.RoomError. Growth by the log is
// not asked for: nobody knows it, and where all keys are written again there is none.
func (r *replaying) room(m *backup.Manifest) error {
	if r.Room == nil {
		return nil
	}
	refused := r.Room(m.SizeBytes())
	if refused == nil {
		return nil
	}
	for i := range m.Files {
		f := &m.Files[i]
		name := backup.FileName(r.plan.Base.Cluster, f.Hash)
		switch info, err := r.Store.Stat(r.ctx, name); {
		case errors.Is(err, objects.ErrNotFound), errors.Is(err, objects.ErrForeign):
			return &fetch.DamageError{Name: name, Err: err}
		case err != nil:
			return err
		case info.Size != f.Size:
			return &fetch.DamageError{Name: name, Err: fmt.Errorf("%w: it has %d bytes, and %s says %d", backup.ErrDamaged,
				info.Size, &r.plan.Base, f.Size)}
		}
	}
	return &backup.RoomError{Err: refused}
}

func (r *replaying) create(path string) (io.WriteCloser, error) {
	file, err := r.FS.Create(path)
	if err != nil || !r.Durable {
		return file, err
	}
	return &syncedFile{file}, nil
}

// syncedFile is durable once it was closed.
type syncedFile struct{ env.File }

// Close implements io.Closer.
func (f *syncedFile) Close() error { return errors.Join(f.Sync(), f.File.Close()) }

// fetched is a segment that was read.
type fetched struct {
	segment *backup.Segment
	err     error
}

// readAhead bounds the bytes of segments that were asked for and not applied: one may be larger.
const readAhead = 64 << 20

// ahead reads the segments of a plan, several at once, and gives them to take in their order, until take returns false.
func (r *replaying) ahead(take func(i int, f fetched) (more bool)) {
	ctx, cancel := context.WithCancel(r.ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	segments := r.plan.Segments
	waiting := make([]chan fetched, 0, len(segments))
	bytes := int64(0)
	for i := range segments {
		for next := len(waiting); next < len(segments) && next < i+r.Parallel; next++ {
			if next > i && bytes+segments[next].Size > readAhead {
				break
			}
			bytes += segments[next].Size
			result := make(chan fetched, 1)
			waiting = append(waiting, result)
			running.Go(func() { result <- r.read(ctx, &segments[next]) })
		}
		f := <-waiting[i]
		waiting[i] = nil
		bytes -= segments[i].Size
		if !take(i, f) {
			return
		}
	}
}

func (r *replaying) read(ctx context.Context, s *backup.Stored) fetched {
	name := s.String()
	if r.ObjectBytes > 0 && s.Size > r.ObjectBytes {
		return fetched{err: damage(s.Hash, name, &backup.TooLargeError{Bytes: s.Size, Most: r.ObjectBytes})}
	}
	content, err := fetch.Segment(ctx, r.Store, s)
	if err != nil {
		return fetched{err: damage(s.Hash, name, err)}
	}
	segment, err := backup.OpenSegmentWithin(&s.SegmentName, content, r.Open, r.ObjectBytes)
	return fetched{segment, damage(s.Hash, name, err)}
}
