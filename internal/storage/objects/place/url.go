package place

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Place is where objects are. It has no secrets.
type Place struct {
	Directory string // empty unless the place is a directory

	Endpoint    string // URL of the server; empty is Amazon's
	Bucket      string
	Prefix      string // of all names: empty, or ends in '/'
	Region      string // empty if the URL does not say it
	PathStyle   bool
	CA          string // file of authorities; empty are the system's
	Credentials string // file; empty is the environment
	Profile     string // section of that file

	within string // directory that allows this one, out of which no link may lead; empty: any may (Allowed)
}

const (
	forms = "file:///DIRECTORY or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"

	paramEndpoint    = "endpoint"
	paramRegion      = "region"
	paramPathStyle   = "path-style"
	paramCA          = "ca"
	paramCredentials = "credentials"
	paramProfile     = "profile"
)

var parameters = []string{paramCA, paramCredentials, paramEndpoint, paramPathStyle, paramProfile, paramRegion}

// These are narrower than Amazon's rules: the names that people and other servers use.
var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm = regexp.MustCompile(`^([A-Za-z0-9_-][A-Za-z0-9._-]*/)*$`)
	wordForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

// mostPrefix leaves room for the longest names: S3 allows 1,024 bytes.
const mostPrefix = 400

// Parse reads a URL. Its errors repeat nothing of it that may be secret.
func Parse(text string) (*Place, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the place of backups is no URL: use %s", forms)
	case u.User != nil:
		return nil, errors.New("the URL of the place has a user or a password: give credentials by AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, or name a file by credentials=FILE")
	case u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("the URL of the place has parts that mean nothing: use %s", forms)
	}
	switch u.Scheme {
	case "file":
		return parseDirectory(u)
	case "s3":
		return parseBucket(u)
	}
	return nil, fmt.Errorf("the URL of the place has an unknown scheme: use %s", forms)
}

func parseDirectory(u *url.URL) (*Place, error) {
	if u.Host != "" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
		return nil, errors.New("a directory has three slashes and an absolute path: file:///mnt/backups")
	}
	if u.RawQuery != "" {
		return nil, errors.New("the URL of a directory has no parameters")
	}
	return &Place{Directory: filepath.Clean(filepath.FromSlash(u.Path))}, nil
}

func parseBucket(u *url.URL) (*Place, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the parameters of the URL of the place cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("the URL of the place has a parameter that is none of %s", strings.Join(parameters, ", "))
		}
		if len(query[name]) != 1 || query[name][0] == "" {
			return nil, fmt.Errorf("the parameter %s has no value, or several", name)
		}
	}
	p := &Place{Bucket: u.Host, Region: query.Get(paramRegion), CA: query.Get(paramCA),
		Credentials: query.Get(paramCredentials),
		Profile:     query.Get(paramProfile)}
	if p.Prefix = strings.Trim(u.Path, "/"); p.Prefix != "" {
		p.Prefix += "/"
	}
	switch {
	case !bucketForm.MatchString(p.Bucket):
		return nil, errors.New("a bucket has 3 to 63 characters of a-z, 0-9, '-' and '.': s3://BUCKET/PREFIX")
	case !prefixForm.MatchString(p.Prefix) || len(p.Prefix) > mostPrefix:
		return nil,
			fmt.Errorf("a prefix has elements of A-Z, a-z, 0-9, '.', '_' and '-', which do not begin with a dot, and at most "+
				"%d bytes", mostPrefix)
	case p.Region != "" && !wordForm.MatchString(p.Region):
		return nil, errors.New("the parameter region is no name of a region, such as eu-central-1")
	case p.Profile != "" && !wordForm.MatchString(p.Profile):
		return nil, errors.New("the parameter profile is no name of a section of a file of credentials")
	case p.Profile != "" && p.Credentials == "":
		return nil,
			errors.New("the parameter profile names a section of the file of the parameter credentials, which is missing")
	}
	return p, p.parseEndpoint(query)
}

func (p *Place) parseEndpoint(query url.Values) error {
	if text := query.Get(paramEndpoint); text != "" {
		if !strings.Contains(text, "://") {
			text = "https://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
			strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
			return errors.New("the parameter endpoint is https://HOST or https://HOST:PORT, or http for a server without TLS")
		}
		p.Endpoint = u.Scheme + "://" + u.Host
	}
	switch style := query.Get(paramPathStyle); style {
	case "":
		p.PathStyle = p.Endpoint != "" // Amazon wants the bucket in the name of the host, and few others have such names
	case "true", "false":
		p.PathStyle = style == "true"
	default:
		return errors.New("the parameter path-style is true or false")
	}
	return nil
}

// String returns the URL, from which Parse makes the same Place.
func (p *Place) String() string {
	if p.Directory != "" {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(p.Directory)}).String()
	}
	query := url.Values{}
	for name, value := range map[string]string{paramEndpoint: p.Endpoint, paramRegion: p.Region, paramCA: p.CA,
		paramCredentials: p.Credentials, paramProfile: p.Profile} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if p.PathStyle != (p.Endpoint != "") {
		query.Set(paramPathStyle, fmt.Sprint(p.PathStyle))
	}
	u := url.URL{Scheme: "s3", Host: p.Bucket, Path: strings.TrimSuffix("/"+p.Prefix, "/")}
	text := u.String()
	if len(query) > 0 {
		// Slashes and colons of other URLs and of files are easier to read as they are, and mean nothing there.
		text += "?" + strings.NewReplacer("%2F", "/", "%3A", ":").Replace(query.Encode())
	}
	return text
}

// host returns the host and port of the server, and whether it has no TLS.
func (p *Place) host() (host string, plain bool) {
	endpoint := cmp.Or(p.Endpoint, "https://s3.amazonaws.com")
	scheme, host, _ := strings.Cut(endpoint, "://")
	return host, scheme == "http"
}
