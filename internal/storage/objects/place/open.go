package place

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/directory"
	"github.com/quorate/quorate/internal/storage/objects/pace"
	"github.com/quorate/quorate/internal/storage/objects/retry"
	"github.com/quorate/quorate/internal/storage/objects/s3"
)

// defaultRegion is that of Amazon, and of servers that have none.
const defaultRegion = "us-east-1"

// Options say how a place is used.
type Options struct {
	FS     env.FS                  // for a directory
	Getenv func(key string) string // the environment of the process
	Retry  retry.Policy
	// BytesPerSecond bounds the bytes of objects, written and read together; 0 is no bound.
	BytesPerSecond int64
	// Memory bounds what all operations hold together, in bytes: it says how many there are at once (AtOnce), and how much of a
	// list is asked for at once. Two operations are always possible, one of them a list, the shortest; 0 is the longest.
	Memory int64
}

// Store is a place that is open. Operations are tried again, as the policy says, within the bounds of the options.
type Store struct {
	objects.Store
	Warnings []string // sentences for an operator

	bucket *s3.Store        // nil if it is a directory
	dir    *directory.Store // nil if it is a bucket
	paced  *pace.Store
	list   int64 // memory of a list
}

// Open opens a place. It sends nothing; a directory is looked at.
func Open(p *Place, o Options) (*Store, error) {
	answer := answerBytes(o.Memory)
	s := &Store{list: s3.MemoryTimes * answer}
	var within objects.Store
	if p.Directory != "" {
		d, err := openDirectory(p, o.FS, s.list/2) // a list that is under way has the other half
		if err != nil {
			return nil, err
		}
		within, s.dir, s.Warnings = d, d, d.Warnings()
	} else {
		b, err := openBucket(p, o.Getenv, int(answer))
		if err != nil {
			return nil, err
		}
		within, s.bucket = b, b
		if _, plain := p.host(); plain {
			s.Warnings = append(s.Warnings, "the server is reached without TLS: those on the way can read and change objects")
		}
	}
	limits := limitsOf(o.Memory)
	limits.BytesPerSecond = o.BytesPerSecond
	s.paced = pace.New(within, limits)
	s.Store = retry.ByClock(s.paced, o.Retry)
	return s, nil
}

const (
	leastAtOnce = 2  // an object that takes long does not hold up all others
	mostAtOnce  = 16 // connections cost the server of a place something, too
)

// LeastMemory is what operations hold that have no more: one list at a time.
const LeastMemory = s3.MemoryTimes * s3.LeastAnswer

// listPart is the part of the memory that lists have.
const listPart = 2

// answerBytes is how long an answer may be where operations have so much memory: lists have a part of it, if they are not too
// short then.
func answerBytes(memory int64) int64 {
	if memory == 0 {
		return s3.MostAnswer
	}
	return min(max(memory/listPart/s3.MemoryTimes, s3.LeastAnswer), s3.MostAnswer)
}

// limitsOf is how many operations have so much memory together.
func limitsOf(memory int64) pace.Limits {
	list := s3.MemoryTimes * answerBytes(memory)
	lists := max(1, memory/listPart/list)
	others := max(leastAtOnce-1, (memory-lists*list)/s3.OtherBytes)
	return pace.Limits{AtOnce: int(min(lists+others, mostAtOnce)), Lists: int(lists)}
}

// AtOnce is how many operations there are at once, 2 at least, where they have so much memory. Those that are asked for beyond
// wait, in any order.
func AtOnce(memory int64) int { return limitsOf(memory).AtOnce }

// Held returns the bytes that operations under way may hold.
func (s *Store) Held() int64 {
	all, lists := s.paced.Under()
	held := int64(lists)*s.list + int64(all-lists)*s3.OtherBytes
	if s.dir != nil {
		held += s.dir.Held()
	}
	return held
}

// RefusesOverwrite reports whether a place refuses by itself to write over an object, which is written again with the same
// bytes: a directory always does.
func (s *Store) RefusesOverwrite(ctx context.Context, name string, body io.ReadSeeker, size int64) (bool, error) {
	if s.bucket == nil {
		return true, nil
	}
	return s.bucket.RefusesOverwrite(ctx, name, body, size)
}

// Traces says what a Put below a directory of the place would leave there beside the object, and returns a function that
// removes it. Of a bucket there is nothing.
func (s *Store) Traces(below string) (remove func()) {
	if s.dir == nil {
		return func() {}
	}
	return s.dir.Traces(below)
}

// Close frees connections. Operations must have ended, or were cancelled and given up.
func (s *Store) Close() {
	if s.bucket != nil {
		s.bucket.Close()
	}
}

func openDirectory(p *Place, fs env.FS, listBytes int64) (*directory.Store, error) {
	dir, err := p.Real() // a link may lead into a data directory
	if err != nil {
		return nil, err
	}
	return directory.Open(fs, dir, directory.Options{Unique: rand.Text, Now: time.Now, ListBytes: listBytes})
}

func openBucket(p *Place, getenv func(string) string, answerBytes int) (*s3.Store, error) {
	get := fromEnvironment(getenv)
	if p.Credentials != "" {
		get = fromFile(p.Credentials, p.Profile)
	}
	if _, err := get(); err != nil {
		return nil, err
	}
	config, err := tlsfiles.Dialing(reload.File{Flag: paramCA, Path: p.CA}, reload.File{}, reload.File{})
	if err != nil {
		return nil, err
	}
	host, plain := p.host()
	region := cmp.Or(p.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), defaultRegion)
	return s3.Open(s3.Options{Endpoint: host, Plain: plain, TLS: config, Region: region, Bucket: p.Bucket, Prefix: p.Prefix,
		PathStyle: p.PathStyle, Credentials: get, AnswerBytes: answerBytes})
}
