package s3

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/quorate/quorate/internal/storage/objects"
)

// abortTimeout is how long the end of an upload that failed may take.
const abortTimeout = 10 * time.Second

// errBody means that the body that a caller gave could not be read, or is shorter than it said.
var errBody = errors.New("the body that is to be stored")

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	if err := errors.Join(objects.CheckName(name), objects.CheckSize(size)); err != nil {
		return err
	}
	// The server is asked first, since it may ignore the condition of the write. One that lets nobody read is not in the way.
	switch _, err := s.Stat(ctx, name); {
	case err == nil:
		return fmt.Errorf("%s: %w", name, objects.ErrExists)
	case !errors.Is(err, objects.ErrNotFound) && !errors.Is(err, objects.ErrDenied):
		return err
	}
	put := s.putWhole
	if size > s.partBytes {
		put = s.putParts
	}
	err := put(ctx, name, body, size)
	if isUnconditional(err) && !s.noMatch.Swap(true) {
		err = put(ctx, name, body, size)
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", name, tell(ctx, err))
	}
	return nil
}

// RefusesOverwrite writes an object again that is there with the same bytes, and reports whether the server refused: whether it
// honours `If-None-Match: *`.
func (s *Store) RefusesOverwrite(ctx context.Context, name string, body io.ReadSeeker, size int64) (bool, error) {
	err := s.putWhole(ctx, name, body, size)
	if isUnconditional(err) {
		return false, nil
	}
	err = tell(ctx, err)
	if errors.Is(err, objects.ErrExists) {
		return true, nil
	}
	return false, err
}

// isUnconditional tells whether a server refused a write since it knows no conditions.
func isUnconditional(err error) bool {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && (answer.Code == "NotImplemented" || answer.StatusCode == 501)
}

func (s *Store) options() minio.PutObjectOptions {
	o := minio.PutObjectOptions{DisableContentSha256: true} // the signature has the sum of the whole body, not of chunks
	if !s.noMatch.Load() {
		o.SetMatchETagExcept("*")
	}
	return o
}

func (s *Store) putWhole(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	sums, err := s.sums(ctx, body, 0, size)
	if err != nil {
		return err
	}
	info, err := s.core.PutObject(ctx, s.bucket, s.prefix+name, sums.body, size, sums.md5, sums.sha256, s.options())
	if err == nil && info.ETag == "" { // a proxy, or a page of a network that wants a login
		return fmt.Errorf("%w: no ETag", errNoAnswer)
	}
	return err
}

// errNoAnswer means that an answer of success has not what a server of S3 says then.
var errNoAnswer = fmt.Errorf("%w: an answer that is none of S3", objects.ErrBusy)

// putParts stores a large object, one part after another.
func (s *Store) putParts(ctx context.Context, name string, body io.ReadSeeker, size int64) (err error) {
	key := s.prefix + name
	upload, err := s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{})
	if err != nil {
		return err
	}
	if upload == "" {
		return fmt.Errorf("%w: no upload", errNoAnswer)
	}
	defer func() {
		if err == nil {
			return
		}
		// Parts of an upload that nobody ends are paid for. After a lost answer this ends nothing: the object is there.
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		_ = s.core.AbortMultipartUpload(rest, s.bucket, key, upload) // a rule of the bucket ends what stays
	}()
	var parts []minio.CompletePart
	for at := int64(0); at < size; at += s.partBytes {
		length := min(s.partBytes, size-at)
		sums, err := s.sums(ctx, body, at, length)
		if err != nil {
			return err
		}
		part, err := s.core.PutObjectPart(ctx, s.bucket, key, upload, len(parts)+1, sums.body, length,
			minio.PutObjectPartOptions{Md5Base64: sums.md5, Sha256Hex: sums.sha256, DisableContentSha256: true})
		if err != nil {
			return err
		}
		parts = append(parts, minio.CompletePart{PartNumber: len(parts) + 1, ETag: part.ETag})
	}
	_, err = s.core.CompleteMultipartUpload(ctx, s.bucket, key, upload, parts, s.options())
	return err
}

// summed is a range of a body with its sums.
type summed struct {
	body        io.Reader
	sha256, md5 string // in hexadecimal; in base64, or empty
}

// sums reads a range of a body for its sums, and returns it for another reading. It hides that the body can seek: the library
// would send it again by itself.
func (s *Store) sums(ctx context.Context, body io.ReadSeeker, at, length int64) (summed, error) {
	sha, md := sha256.New(), hash.Hash(nil)
	to := io.Writer(sha)
	if s.sumMD5 {
		md = md5.New()
		to = io.MultiWriter(sha, md)
	}
	if _, err := body.Seek(at, io.SeekStart); err != nil {
		return summed{}, fmt.Errorf("%w: %w", errBody, err)
	}
	n, err := io.Copy(to, &during{ctx, io.LimitReader(objects.Ahead(body), length)})
	if err == nil && n != length {
		err = fmt.Errorf("it ends after %d bytes, of %d", at+n, at+length)
	}
	if err == nil {
		_, err = body.Seek(at, io.SeekStart)
	}
	if err != nil {
		return summed{}, fmt.Errorf("%w: %w", errBody, err)
	}
	out := summed{body: &during{ctx, io.LimitReader(body, length)}, sha256: hex.EncodeToString(sha.Sum(nil))}
	if md != nil {
		out.md5 = base64.StdEncoding.EncodeToString(md.Sum(nil))
	}
	return out, nil
}

// during is a reader that ends with a context.
type during struct {
	ctx  context.Context
	body io.Reader
}

// Read implements io.Reader.
func (d *during) Read(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.body.Read(p)
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := objects.CheckName(name); err != nil {
		return err
	}
	err := tell(ctx, s.core.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}))
	if err == nil || errors.Is(err, objects.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("delete %s: %w", name, err)
}
