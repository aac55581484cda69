package place_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// Ensure that a URL is read as it is meant, and that what is written of a place is read as the same place.
func TestParse(t *testing.T) {
	for text, want := range map[string]place.Place{
		"file:///mnt/backups":                     {Directory: "/mnt/backups"},
		"file:///mnt/a%20b/../":                   {Directory: "/mnt"},
		"s3://backups":                            {Bucket: "backups"},
		"s3://backups/":                           {Bucket: "backups"},
		"s3://backups/Prod/c1/?region=eu-north-1": {Bucket: "backups", Prefix: "Prod/c1/", Region: "eu-north-1"},
		"s3://b.x-1?endpoint=minio:9000": {Bucket: "b.x-1", Endpoint: "https://minio:9000",
			PathStyle: true},
		"s3://bbb?endpoint=http://[::1]:9000/&path-style=false": {Bucket: "bbb", Endpoint: "http://[::1]:9000"},
		"s3://bbb?path-style=true":                              {Bucket: "bbb", PathStyle: true},
		"s3://bbb?ca=/etc/ca.pem&credentials=/etc/keys&profile=p": {Bucket: "bbb", CA: "/etc/ca.pem", Credentials: "/etc/keys",
			Profile: "p"},
	} {
		got, err := place.Parse(text)
		if err != nil || *got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
			continue
		}
		again, err := place.Parse(got.String())
		if err != nil || *again != want {
			t.Errorf("%s is written %s, which is %+v, %v", text, got, again, err)
		}
	}
}

// Ensure that other URLs are refused with a reason, and that no word of one is repeated that may be a secret.
// Ensure that two URLs are one place whatever files they name, and however the port of the server is written.
func TestSameURL(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"s3://bbb/p", "s3://bbb/p?credentials=/root/keys&region=x", true},
		{"s3://bbb/p?endpoint=https://h:443", "s3://bbb/p/?endpoint=https://H&ca=/etc/ca.pem&path-style=false", true},
		{"s3://bbb/p", "s3://bbb/q", false}, {"s3://bbb/p", "s3://ccc/p", false}, {"s3://bbb/p", "s3://bbb/p?endpoint=https://h", false},
		{"file:///b", "file:///b/", true}, {"file:///b", "file:///c", false}, {"file:///b", "s3://b", false}, {"", "", false},
	} {
		if got := place.SameURL(row.a, row.b); got != row.same {
			t.Errorf("%s and %s: %t", row.a, row.b, got)
		}
	}
}

func TestParse_refuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "unknown scheme",
		"/mnt/hush":             "unknown scheme",
		"gs://hush":             "unknown scheme",
		"s3:hush":               "mean nothing",
		"s3://bucket/p#hush":    "mean nothing",
		"s3://hush:hush@bucket": "credentials=FILE",
		"s3://hush@bucket":      "credentials=FILE",
		"s3://bucket/%zzhush":   "no URL",
		"s3://hush_/":           "3 to 63",
		"s3://Hush":             "3 to 63",
		"s3:///hush":            "3 to 63",
		"s3://bucket/../hush":   "begin with a dot",
		"s3://bucket/.hush":     "begin with a dot",
		"s3://bucket/a//hush":   "begin with a dot",
		"s3://bucket/hush%20x":  "begin with a dot",
		"s3://bucket/" + strings.Repeat("hush", 101): "at most 400",
		"s3://bucket?secret-key=hush":                "none of ca, credentials",
		"s3://bucket?hush":                           "none of ca, credentials",
		"s3://bucket?region=hush&region=hush":        "no value, or several",
		"s3://bucket?region=":                        "no value, or several",
		"s3://bucket?region=hush/x":                  "no name of a region",
		"s3://bucket?region=%zz":                     "cannot be read",
		"s3://bucket?profile=hush":                   "credentials, which is missing",
		"s3://bucket?credentials=a&profile=hush+x":   "no name of a section",
		"s3://bucket?path-style=hush":                "true or false",
		"s3://bucket?endpoint=ftp://hush":            "https://HOST",
		"s3://bucket?endpoint=https://a:hush@b":      "https://HOST",
		"s3://bucket?endpoint=https://b/hush":        "https://HOST",
		"s3://bucket?endpoint=https://":              "https://HOST",
		"file://mnt/hush":                            "three slashes",
		"file:///mnt?hush=1":                         "no parameters",
	} {
		got, err := place.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want words of %q", text, got, err, want)
		}
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "hush") {
			t.Errorf("%q: the error repeats it: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("s3://bucket/prefix?endpoint=https://a:1&region=r&path-style=true&ca=/a&credentials=/b&profile=c")
	f.Add("file:///a/b")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := place.Parse(text)
		if err != nil {
			return
		}
		again, err := place.Parse(got.String())
		if err != nil || *again != *got {
			t.Errorf("%q is %+v, written %s, which is %+v, %v", text, got, got, again, err)
		}
	})
}

func options(env map[string]string) place.Options {
	return place.Options{FS: files.Disk, Getenv: func(key string) string { return env[key] }, Retry: retry.Policy{Attempts: 1}}
}

func open(url string, env map[string]string) (*place.Store, error) {
	p, err := place.Parse(url)
	if err != nil {
		return nil, err
	}
	return place.Open(p, options(env))
}

// Ensure that a directory that a URL names is a place like others.
func TestOpen_directory(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objects.Store {
		s, err := open("file://"+t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}, objectstest.Options{Large: 1 << 20})
}

// Ensure that a link does not lead into a data directory, whose parts are seen from above.
func TestOpen_link(t *testing.T) {
	dir := t.TempDir()
	data, link := filepath.Join(dir, "data"), filepath.Join(dir, "link")
	inside := filepath.Join(data, "member", "wal", "objects")
	if err := errors.Join(os.MkdirAll(inside, 0o700), os.Symlink(inside, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := open("file://"+link, nil); err == nil || !strings.Contains(err.Error(), "data directory") {
		t.Errorf("got %v", err)
	}
}

// signer tells which key signed a request, and for which region.
func signer(t *testing.T) (url string, signed func() string) {
	t.Helper()
	scope := ""
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		parts := strings.Split(rest, "/")
		scope = fmt.Sprint(parts[0], " ", parts[min(2, len(parts)-1)], " ", r.Header.Get("X-Amz-Security-Token"))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(v.Close)
	return v.URL, func() string { return scope }
}

// Ensure that credentials and region come from where they are said to, and that a file that was replaced is read again.
func TestOpen_credentials(t *testing.T) {
	server, signed := signer(t)
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# a comment = x\n[default]\naws_access_key_id = K1\naws_secret_access_key=S1\nregion = x\n\n" +
		"[other]\nAWS_ACCESS_KEY_ID=K2\n" +
		"aws_secret_access_key=a=b\naws_session_token = T2\n; aws_access_key_id = K3\n")
	env := map[string]string{"AWS_ACCESS_KEY_ID": "K0", "AWS_SECRET_ACCESS_KEY": "S0"}
	for _, c := range []struct {
		parameters string
		env        map[string]string
		want       string
	}{
		{"", env, "K0 us-east-1 "},
		{"&region=eu-north-1", env, "K0 eu-north-1 "},
		{"", map[string]string{"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T",
			"AWS_REGION":         "r1",
			"AWS_DEFAULT_REGION": "r2"}, "K r1 T"},
		{"&credentials=" + file, env, "K1 us-east-1 "},
		{"&credentials=" + file + "&profile=other", nil, "K2 us-east-1 T2"},
	} {
		s, err := open("s3://backups?endpoint="+server+c.parameters, c.env)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.List(t.Context(), "", "", 1); !errors.Is(err, objects.ErrDenied) || signed() != c.want {
			t.Errorf("%s: signed by %q, want %q: %v", c.parameters, signed(), c.want, err)
		}
		s.Close()
	}
	s, err := open("s3://backups?endpoint="+server+"&credentials="+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write("[default]\naws_access_key_id = K9\naws_secret_access_key=S9\n")
	if _, _, err := s.List(t.Context(), "", "", 1); !errors.Is(err, objects.ErrDenied) || signed() != "K9 us-east-1 " {
		t.Errorf("signed by %q: %v", signed(), err)
	}
}

// Ensure that credentials that are missing, or that others may read, are refused before anything is sent, without a word of
// them.
func TestOpen_badCredentials(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const keys = "[default]\naws_access_key_id=hush\naws_secret_access_key=hush\n"
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{"all": {keys, 0o644}, "written": {keys, 0o620}, "large": {keys + strings.Repeat("#\n", 64<<10), 0o600},
		"half": {"[default]\naws_access_key_id=hush\n", 0o600}, "process": {"[default]\ncredential_process=/bin/hush\n",
			0o600}} {
		if err := errors.Join(os.WriteFile(at(name), []byte(f.text), f.mode), os.Chmod(at(name), f.mode)); err != nil {
			t.Fatal(err)
		}
	}
	for parameters, want := range map[string]string{
		"": "AWS_ACCESS_KEY_ID", "&credentials=" + at("absent"): "no such file", "&credentials=" + dir: "no file",
		"&credentials=" + at("all"): "chmod 600", "&credentials=" + at("written"): "chmod 600", "&credentials=" +
			at("large"): "at most",
		"&credentials=" + at("half"): "section [default]", "&credentials=" + at("process"): "section [default]",
	} {
		if runtime.GOOS == "windows" && want == "chmod 600" {
			continue
		}
		_, err := open("s3://backups?endpoint=http://127.0.0.1:1"+parameters,
			map[string]string{"AWS_SECRET_ACCESS_KEY": "hush"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want words of %q", parameters, err, want)
		}
	}
}

// Ensure that an authority that cannot be read is told by its parameter.
func TestOpen_badAuthority(t *testing.T) {
	env := map[string]string{"AWS_ACCESS_KEY_ID": "K0", "AWS_SECRET_ACCESS_KEY": "S0"}
	if _, err := open("s3://backups?ca=/absent.pem", env); err == nil || !strings.Contains(err.Error(), "ca /absent.pem") {
		t.Errorf("got %v", err)
	}
}

// Ensure that each error that callers tell apart has advice for an operator.
func TestAdvice(t *testing.T) {
	for _, err := range []error{objects.ErrBusy, objects.ErrUnreachable, objects.ErrFull, objects.ErrDenied,
		objects.ErrCredentials,
		objects.ErrNoPlace, objects.ErrLink, objects.ErrRegion, objects.ErrClock, objects.ErrTLS, objects.ErrDamaged,
		objects.ErrUser, objects.ErrReadOnly, objects.ErrNoTLS} {
		if place.Advice(fmt.Errorf("x: %w", err)) == "" {
			t.Errorf("%v has no advice", err)
		}
	}
	// Most who are refused only read, and other files may lie beside a backup.
	got := place.Advice(objects.ErrUser)
	if !strings.HasPrefix(got, "Run this as the user that members run as") || strings.Contains(got, "all that is in it") {
		t.Errorf("advice for another user: %q", got)
	}
	for _, prefix := range []string{"base", "log", "gap", "kept", "obj", "probe", ".tmp"} {
		if !strings.Contains(got, " "+prefix) {
			t.Errorf("no %s in %q", prefix, got)
		}
	}
	if got := place.Advice(errors.New("x")); got != "" {
		t.Errorf("advice from nothing: %q", got)
	}
}
