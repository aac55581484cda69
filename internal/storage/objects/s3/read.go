package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/quorate/quorate/internal/storage/objects"
)

// listTimeout ends a list of a server that gives empty pages for ever.
const listTimeout = 5 * time.Minute

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, name string) (objects.Info, error) {
	if err := objects.CheckName(name); err != nil {
		return objects.Info{}, err
	}
	info, err := s.core.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
	if err != nil {
		return objects.Info{}, fmt.Errorf("stat %s: %w", name, tell(ctx, err))
	}
	if info.Size < 0 {
		return objects.Info{}, fmt.Errorf("stat %s: %w: the answer has no size", name, objects.ErrBusy)
	}
	return objects.Info{Name: name, Size: info.Size, Time: info.LastModified}, nil
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := objects.CheckName(name); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("%w: offset %d", objects.ErrName, offset)
	}
	if length == 0 { // the protocol has no such range
		_, err := s.Stat(ctx, name)
		return io.NopCloser(bytes.NewReader(nil)), err
	}
	length = min(length, objects.MaxSize) // no object is larger
	o, ranged := minio.GetObjectOptions{}, offset > 0 || length > 0
	if length > 0 {
		o.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	} else if ranged {
		o.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	from, info, header, err := s.core.GetObject(context.WithValue(ctx, wantsBody{}, true), s.bucket, s.prefix+name, o)
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if ok && answer.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return io.NopCloser(bytes.NewReader(nil)), nil // it begins behind the end
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, tell(ctx, err))
	}
	left := info.Size
	if ranged && (info.Size != 0 || header.Get("Content-Range") != "") { // some give an empty object as a whole
		left, err = rangeOf(header, offset, length)
	}
	if err == nil && (left < 0 || left != info.Size || !ranged && header.Get("Content-Range") != "") {
		err = fmt.Errorf("%w: an answer that is a part, or does not have the length of its body", objects.ErrBusy)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("get %s: %w", name, err), from.Close())
	}
	return &body{ctx: ctx, name: name, from: from, left: left}, nil
}

// rangeOf returns how many bytes an answer has, and refuses one with another range than was asked for.
func rangeOf(header http.Header, offset, length int64) (int64, error) {
	text := header.Get("Content-Range")
	rest, ok := strings.CutPrefix(text, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	begin, end, ok3 := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(begin, 10, 64)
	last, err2 := strconv.ParseInt(end, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	if !ok || !ok2 || !ok3 || errors.Join(err1, err2, err3) != nil {
		return 0, fmt.Errorf("%w: it ignores ranges, or does not say which one it sends", objects.ErrBusy)
	}
	want := size - 1
	if length > 0 {
		want = min(want, offset+length-1)
	}
	if first != offset || last != want || last < first {
		return 0, fmt.Errorf("%w: it sends bytes %d to %d, not %d to %d", objects.ErrBusy, first, last, offset, want)
	}
	return last - first + 1, nil
}

// body is an object as it comes.
type body struct {
	ctx  context.Context
	name string
	from io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p[:min(int64(len(p)), max(b.left, 1))])
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, fmt.Errorf("get %s: %w: the body is longer than the answer says", b.name, objects.ErrBusy)
	case err == nil || errors.Is(err, io.EOF) && b.left == 0:
		return n, err
	case b.ctx.Err() != nil:
		return n, b.ctx.Err()
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("get %s: %w: the body broke off, %d bytes before its end: %w", b.name, objects.ErrUnreachable,
		b.left, err)
}

// Close implements io.Closer.
func (b *body) Close() error { return b.from.Close() }

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	if err := errors.Join(objects.CheckList(prefix, after, limit), ctx.Err()); err != nil {
		return nil, false, err
	}
	whole, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	noOwner := false
	o := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, MaxKeys: min(limit+1, s.perPage),
		FetchOwner: &noOwner}
	if after != "" {
		o.StartAfter = s.prefix + after
	}
	last := after
	seen := &answers{}
	for entry := range s.core.ListObjectsIter(context.WithValue(whole, wantsList{}, seen), s.bucket, o) {
		if entry.Err != nil {
			return nil, false, fmt.Errorf("list %q: %w", prefix, tell(ctx, entry.Err))
		}
		name, ok := strings.CutPrefix(entry.Key, s.prefix)
		switch {
		case !ok || !strings.HasPrefix(name, prefix) || name <= last:
			return nil, false, fmt.Errorf("list %q: %w: the list is out of order, or of other objects", prefix, objects.ErrBusy)
		case len(found) == limit:
			return found, true, nil
		}
		last = name
		if objects.CheckName(name) == nil && entry.Size >= 0 { // others may have objects there, too
			found = append(found, objects.Info{Name: name, Size: entry.Size, Time: entry.LastModified})
		}
	}
	if whole.Err() != nil { // the library ends a list without a word
		return nil, false, cmp.Or(ctx.Err(), fmt.Errorf("list %q: %w: the list has no end", prefix, objects.ErrUnreachable))
	}
	// The library takes any XML for an empty list, also a page that a proxy made.
	if seen.lists < seen.all || seen.all == 0 {
		return nil, false, fmt.Errorf("list %q: %w: an answer that is no list", prefix, objects.ErrBusy)
	}
	return found, false, nil
}
