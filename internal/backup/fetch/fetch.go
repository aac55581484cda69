package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// DamageError means that an object is missing, is none, or is not what its name says.
type DamageError struct {
	Name string
	Err  error
	Of   string // the base that was read, if Name is that of one of its files
}

func (e *DamageError) Error() string { return fmt.Sprintf("object %s: %v", e.Name, e.Err) }
func (e *DamageError) Unwrap() error { return e.Err }

// mostClusters bounds the clusters of a place.
const mostClusters = 10_000

// Clusters returns the clusters that have a base or segments in a place, sorted.
func Clusters(ctx context.Context, store objects.Store) ([]consensus.ClusterID, error) {
	var found []consensus.ClusterID
	for _, prefix := range []string{backup.BasePrefix, backup.LogPrefix} {
		for after := ""; ; {
			if len(found) > mostClusters {
				return nil, fmt.Errorf("the place names more than %d clusters, so somebody else writes there: say which one "+
					"is meant (--cluster)", mostClusters)
			}
			infos, _, err := store.List(ctx, prefix, after, 1)
			if err != nil {
				return nil, err
			}
			if len(infos) == 0 {
				break
			}
			word, _, _ := strings.Cut(strings.TrimPrefix(infos[0].Name, prefix), "/")
			after = prefix + word + "0" // '0' is the byte after '/': past all objects of this one
			if id, err := strconv.ParseUint(word, 16, 64); err == nil && len(word) == 16 {
				found = append(found, consensus.ClusterID(id))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Catalog lists what a place has of a cluster.
func Catalog(ctx context.Context, store objects.Store, cluster consensus.ClusterID) (*backup.Catalog, error) {
	c := &backup.Catalog{Cluster: cluster}
	for _, prefix := range []string{backup.BasePrefix, backup.LogPrefix, backup.GapPrefix, backup.KeptPrefix} {
		l := lister{store, c, catalogPages, func(string) bool { return true }}
		if err := l.list(ctx, prefix, "", func() {}); err != nil {
			return nil, err
		}
	}
	c.Sort()
	return c, nil
}

// catalogPages bounds the pages of a list for a Catalog.
const catalogPages = 2 * backup.MaxSegments / objects.MaxList

// lister lists objects into a catalog.
type lister struct {
	store objects.Store
	into  *backup.Catalog
	pages int                    // at most, of a list
	fits  func(name string) bool // whether an object counts
}

// list adds the objects of a kind, those behind a name, and calls added after each page.
func (l *lister) list(ctx context.Context, prefix, after string, added func()) error {
	of := fmt.Sprintf("%s%016x/", prefix, uint64(l.into.Cluster))
	for page, more := 0, true; more; page++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if page == l.pages {
			return fmt.Errorf("the place has more objects below %s than are looked at, up to %s: somebody else writes there",
				of, after)
		}
		infos, rest, err := l.store.List(ctx, of, after, objects.MaxList)
		if err != nil {
			return err
		}
		for i := range infos {
			after = infos[i].Name
			if !l.fits(after) {
				continue
			}
			if err := l.into.Add(after, infos[i].Size); err != nil {
				return err
			}
		}
		added()
		more = rest && len(infos) > 0
	}
	return nil
}

// through is a place of which lists end before a name.
type through struct {
	objects.Store
	end string
}

// List implements objects.Store.
func (t through) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	found, more, err := t.Store.List(ctx, prefix, after, limit)
	n, _ := slices.BinarySearchFunc(found, t.end, func(i objects.Info, end string) int { return cmp.Compare(i.Name, end) })
	return found[:n], more && n == len(found), err
}

// Object reads an object of at most so many bytes.
func Object(ctx context.Context, store objects.Store, name string, hash backup.Hash, most int64) ([]byte, error) {
	return object(ctx, store, name, hash, most, 0)
}

// grownBytes is up to how many bytes room is made for a segment before it is read. A buffer that grows holds up to three times
// what it was given for a moment.
const grownBytes = 4 << 20

// Segment reads a segment.
func Segment(ctx context.Context, store objects.Store, s *backup.Stored) ([]byte, error) {
	most := max(0, min(s.Size, backup.MaxSegmentBytes))
	return object(ctx, store, s.String(), s.Hash, most, int(min(most, grownBytes))+bytes.MinRead) // the last read gets nothing
}

// object reads an object into a buffer with room for so many bytes.
func object(
	ctx context.Context, store objects.Store, name string, hash backup.Hash, most int64, room int,
) ([]byte, error) {
	var content bytes.Buffer
	err := twice(func() error {
		content.Reset()
		content.Grow(room)
		return read(ctx, store, name, hash, most, &content)
	})
	return content.Bytes(), err
}

// File reads a file of a base of a cluster, and decrypts it if it is encrypted. create is called before each try.
func File(ctx context.Context, store objects.Store, cluster consensus.ClusterID, f *backup.File,
	create func() (io.WriteCloser, error)) error {
	return twice(func() error {
		to, err := create()
		if err != nil {
			return err
		}
		var plain io.Writer = to
		if f.Key != nil {
			plain = &cipher.StreamWriter{S: f.Key.Stream(0), W: to}
		}
		err = read(ctx, store, backup.FileName(cluster, f.Hash), f.Hash, f.Size, plain)
		return errors.Join(err, to.Close())
	})
}

// twice tries again what found damage: it may have been on the way.
func twice(try func() error) error {
	err := try()
	if damage := (*DamageError)(nil); errors.As(err, &damage) {
		return try()
	}
	return err
}

func read(ctx context.Context, store objects.Store, name string, hash backup.Hash, most int64, to io.Writer) (err error) {
	body, err := store.Get(ctx, name, 0, -1)
	if errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrForeign) {
		return &DamageError{Name: name, Err: err}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	sum := sha256.New()
	// A file of an env.FS may change the bytes that it is given: the sum takes them first.
	n, err := io.Copy(io.MultiWriter(sum, to), io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return err
	case n > most:
		return &DamageError{Name: name, Err: fmt.Errorf("%w: more than %d bytes", backup.ErrDamaged, most)}
	case backup.Hash(sum.Sum(nil)) != hash:
		return &DamageError{Name: name, Err: fmt.Errorf("%w: its bytes have another sum", backup.ErrDamaged)}
	}
	return nil
}
