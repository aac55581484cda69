package place

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/quorate/quorate/internal/storage/objects/s3"
)

// mostCredentials is how large a file of credentials may be, in bytes.
const mostCredentials = 64 << 10

// Modes that a file of secrets must not have: others than owner and group read it, or others than the owner write it.
const tooOpen = 0o027 &^ 0o001

const defaultProfile = "default"

var errNoKeys = errors.New("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of this process, or " +
	"name a file by credentials=FILE in the URL (a member: in the URL of its --backup-places)")

// fromEnvironment returns the credentials that Amazon's programs take from the environment.
func fromEnvironment(getenv func(string) string) func() (s3.Credentials, error) {
	return func() (s3.Credentials, error) {
		c := s3.Credentials{AccessKey: getenv("AWS_ACCESS_KEY_ID"), SecretKey: getenv("AWS_SECRET_ACCESS_KEY"),
			Session: getenv("AWS_SESSION_TOKEN")}
		if c.AccessKey == "" || c.SecretKey == "" {
			return s3.Credentials{}, errNoKeys
		}
		return c, nil
	}
}

// fromFile returns the credentials of a section of a file in the format of Amazon's programs. The file is read for each
// request, so that it may be replaced. Programs that such a file may name are not run.
func fromFile(path, profile string) func() (s3.Credentials, error) {
	if profile == "" {
		profile = defaultProfile
	}
	return func() (s3.Credentials, error) {
		text, err := readSecret(path)
		if err != nil {
			return s3.Credentials{}, err
		}
		c := parseCredentials(text, profile)
		if c.AccessKey == "" || c.SecretKey == "" {
			return s3.Credentials{}, fmt.Errorf("%s: section [%s] has no aws_access_key_id and aws_secret_access_key", path,
				profile)
		}
		return c, nil
	}
}

// readSecret reads a small file that others must not be able to read.
func readSecret(path string) (text string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&tooOpen != 0:
		return "", fmt.Errorf("%s can be read or changed by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	case info.Size() > mostCredentials:
		return "", fmt.Errorf("%s has %d bytes, and a file of credentials at most %d", path, info.Size(), mostCredentials)
	}
	raw, err := io.ReadAll(io.LimitReader(file, mostCredentials))
	return string(raw), err
}

func parseCredentials(text, profile string) (c s3.Credentials) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimSuffix(name, "]"))
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != profile || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(key)) {
		case "aws_access_key_id":
			c.AccessKey = value
		case "aws_secret_access_key":
			c.SecretKey = value
		case "aws_session_token":
			c.Session = value
		}
	}
	return c
}
