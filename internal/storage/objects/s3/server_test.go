package s3_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects/s3"
)

// server is a small server of S3, in memory. It checks no signatures.
type server struct {
	*httptest.Server
	// conditions says that the server honours If-None-Match.
	conditions bool

	mu      sync.Mutex
	before  answerer // is asked first
	after   answerer // is asked when the work is done and nothing was answered
	held    map[string][]byte
	uploads map[string]map[int][]byte
	asked   []string // method and path of each request
}

// answerer answers by itself, and returns true, where a test wants a fault.
type answerer func(w http.ResponseWriter, r *http.Request) bool

func (v *server) setBefore(f answerer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.before = f
}

func (v *server) setAfter(f answerer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.after = f
}

func serve(t *testing.T) *server {
	t.Helper()
	v := &server{conditions: true, held: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *server) options() s3.Options {
	return s3.Options{Endpoint: strings.TrimPrefix(v.URL, "http://"), Plain: true, Region: "us-east-1", Bucket: "backups",
		Prefix:    "c/1/",
		PathStyle: true, PartBytes: 64 << 10, Stall: 10 * time.Second, Credentials: func() (s3.Credentials, error) {
			return s3.Credentials{AccessKey: "key", SecretKey: "plain-secret"}, nil
		}}
}

func (v *server) open(t *testing.T) *s3.Store {
	t.Helper()
	return openWith(t, v.options())
}

func openWith(t *testing.T, o s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// refuse answers with an error of S3.
func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>said by the test</Message></Error>`, code)
}

// ServeHTTP implements http.Handler.
func (v *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	before := v.before
	v.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, r.Method+" "+r.URL.Path)
	query := r.URL.Query()
	switch {
	case bucket != "backups":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet && query.Get("list-type") == "2":
		v.list(w, r)
	case r.Method == http.MethodPost && query.Has("uploads"):
		id := fmt.Sprint(len(v.uploads) + 1)
		v.uploads[id] = map[int][]byte{}
		fmt.Fprintf(w,
			"<InitiateMultipartUploadResult><Bucket>backups</Bucket><UploadId>%s</UploadId>"+
				"</InitiateMultipartUploadResult>", id)
	case r.Method == http.MethodPut && query.Has("uploadId"):
		n, _ := strconv.Atoi(query.Get("partNumber"))
		v.uploads[query.Get("uploadId")][n] = content
		w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(n)))
	case r.Method == http.MethodPost && query.Has("uploadId"):
		v.complete(w, r, key, query.Get("uploadId"))
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		delete(v.uploads, query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		v.put(w, r, key, content)
	case r.Method == http.MethodDelete:
		delete(v.held, key)
		if v.after == nil || !v.after(w, r) {
			w.WriteHeader(http.StatusNoContent)
		}
	case v.held[key] == nil:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"e"`)
		http.ServeContent(w, r, key, time.Unix(1e9, 0), strings.NewReader(string(v.held[key])))
	}
}

func (v *server) put(w http.ResponseWriter, r *http.Request, key string, content []byte) {
	if v.conditions && r.Header.Get("If-None-Match") == "*" && v.held[key] != nil {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	v.held[key] = append([]byte{}, content...)
	if v.after == nil || !v.after(w, r) {
		w.Header().Set("ETag", `"e"`)
	}
}

func (v *server) complete(w http.ResponseWriter, r *http.Request, key, id string) {
	parts := v.uploads[id]
	if parts == nil {
		refuse(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	var whole []byte
	for _, n := range slices.Sorted(maps.Keys(parts)) {
		whole = append(whole, parts[n]...)
	}
	delete(v.uploads, id)
	if v.conditions && r.Header.Get("If-None-Match") == "*" && v.held[key] != nil {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	v.held[key] = whole
	if v.after == nil || !v.after(w, r) {
		fmt.Fprint(w,
			`<CompleteMultipartUploadResult><Bucket>backups</Bucket><Key>k</Key><ETag>e</ETag></CompleteMultipartUploadResult>`)
	}
}

// listed is an answer to a list.
type listed struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	IsTruncated bool
	Next        string  `xml:"NextContinuationToken"`
	Contents    []entry `xml:"Contents"`
}

type entry struct {
	Key          string
	Size         int
	LastModified time.Time
}

func (v *server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	after := max(query.Get("start-after"), query.Get("continuation-token"))
	most, _ := strconv.Atoi(query.Get("max-keys"))
	var out listed
	for _, key := range slices.Sorted(maps.Keys(v.held)) {
		if !strings.HasPrefix(key, query.Get("prefix")) || key <= after {
			continue
		}
		if len(out.Contents) == most {
			out.IsTruncated, out.Next = true, out.Contents[most-1].Key
			break
		}
		out.Contents = append(out.Contents, entry{key, len(v.held[key]), time.Unix(1e9, 0).UTC()})
	}
	if v.after == nil || !v.after(w, r) {
		_ = xml.NewEncoder(w).Encode(out)
	}
}

// lose ends the connection of a request without an answer.
func lose(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
