package s3

import (
	"crypto/fips140"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/quorate/quorate/internal/storage/objects"
)

const (
	// partBytes is the size of a part of a large object, and the most that one request stores.
	partBytes = 8 << 20
	// stall is how long a request may make no progress.
	stall = time.Minute
	// mostHeader bounds the headers of an answer.
	mostHeader = 64 << 10
	// mostIdle is how long an unused connection stays.
	mostIdle = time.Minute
	// listed is what an object takes of an answer that lists it, at most as a rule: so many objects are asked for.
	listed = 2 << 10
)

// Bounds of Options.AnswerBytes. The least one leaves room for the buffers of a connection.
const (
	LeastAnswer = 192 << 10
	MostAnswer  = 2 << 20
)

// MemoryTimes is how many times Options.AnswerBytes an operation takes at most: buffers of a connection, and a list that is
// decoded.
const MemoryTimes = 8

// OtherBytes is what an operation takes at most that is no list: its answer is no longer than LeastAnswer, but for an object's
// bytes, which nothing holds.
const OtherBytes = MemoryTimes * LeastAnswer

// Options say where a bucket is, and how to speak to it.
type Options struct {
	Endpoint  string // host or host:port
	Plain     bool   // without TLS
	TLS       *tls.Config
	Region    string
	Bucket    string
	Prefix    string // of all names; empty, or ends in '/'
	PathStyle bool   // the bucket is in the path of URLs rather than in the host's name

	// Credentials returns those that are good now. It is asked before each request, so that they may change.
	Credentials func() (Credentials, error)

	// Stall is how long a request may make no progress; 0 is a minute.
	Stall time.Duration
	// PartBytes is the size of a part of a large object; 0 is 8 MiB. Servers refuse less than 5 MiB.
	PartBytes int64
	// AnswerBytes bounds what an answer may have beside the body of an object and its headers; 0 is MostAnswer. A list is asked
	// for in pages that fit.
	AnswerBytes int
}

// Credentials sign requests.
type Credentials struct {
	AccessKey string
	SecretKey string
	Session   string // token of temporary ones
}

// String keeps secrets out of logs.
func (c Credentials) String() string { return "credentials of " + c.AccessKey }

// GoString implements fmt.GoStringer.
func (c Credentials) GoString() string { return c.String() }

// Store is an objects.Store in a bucket.
type Store struct {
	core      minio.Core
	transport *http.Transport
	bucket    string
	prefix    string
	partBytes int64
	perPage   int // objects of a list that are asked for at once
	sumMD5    bool
	noMatch   atomic.Bool // the server refuses If-None-Match
}

// Open returns the store in a bucket. It sends nothing.
func Open(o Options) (*Store, error) {
	if o.Stall == 0 {
		o.Stall = stall
	}
	if o.PartBytes == 0 {
		o.PartBytes = partBytes
	}
	if o.AnswerBytes == 0 {
		o.AnswerBytes = MostAnswer
	}
	perPage := min(objects.MaxList, o.AnswerBytes/listed)
	lookup := minio.BucketLookupDNS
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	transport := newTransport(o.TLS)
	core, err := minio.NewCore(o.Endpoint, &minio.Options{
		Creds:        credentials.New(provider{o.Credentials}),
		Secure:       !o.Plain,
		Transport:    &guarded{within: transport, stall: o.Stall, most: o.AnswerBytes, perPage: perPage},
		Region:       o.Region,
		BucketLookup: lookup,
		MaxRetries:   1,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: endpoint %s: %w", objects.ErrName, o.Endpoint, err)
	}
	return &Store{core: *core, transport: transport, bucket: o.Bucket, prefix: o.Prefix, partBytes: o.PartBytes,
		perPage: perPage, sumMD5: !fips140.Enabled()}, nil
}

// Close closes connections that no operation uses.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

// provider gives credentials to the library.
type provider struct{ get func() (Credentials, error) }

// ErrNoCredentials means that there are no credentials, or that they cannot be read.
var ErrNoCredentials = errors.New("no credentials")

// RetrieveWithCredContext implements credentials.Provider.
func (p provider) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	c, err := p.get()
	if err != nil {
		return credentials.Value{}, fmt.Errorf("%w: %w", ErrNoCredentials, err)
	}
	return credentials.Value{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: c.Session,
		SignerType: credentials.SignatureV4}, nil
}

// Retrieve implements credentials.Provider.
func (p provider) Retrieve() (credentials.Value, error) { return p.RetrieveWithCredContext(nil) }

// IsExpired implements credentials.Provider: they are asked for again each time.
func (provider) IsExpired() bool { return true }
