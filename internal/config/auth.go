package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JWT says how JSON web tokens are signed.
type JWT struct {
	SignMethod                    string
	PublicKeyFile, PrivateKeyFile string // one may be empty; HS… need the private one
	TTL                           time.Duration
}

// signMethods are etcd's.
var signMethods = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
	"HS256", "HS384", "HS512"}

// JWT reads --auth-token. It returns nil for simple tokens. Whether the files hold keys is seen when they are read.
func (c *Config) JWT() (*JWT, error) {
	kind, options, more := strings.Cut(c.Auth.Token, ",")
	switch {
	case kind == "simple" && !more:
		return nil, nil
	case kind == "simple":
		return nil, errors.New("simple tokens have no options; --auth-token-ttl sets how long they are good")
	case kind != "jwt":
		return nil, fmt.Errorf("invalid type %q, choose simple or jwt", kind)
	}
	j := &JWT{TTL: 5 * time.Minute}
	if err := j.read(options); err != nil {
		return nil, err
	}
	switch {
	case j.SignMethod == "":
		return nil, fmt.Errorf("jwt needs sign-method, one of %s", strings.Join(signMethods, ", "))
	case !slices.Contains(signMethods, j.SignMethod):
		return nil, fmt.Errorf("invalid sign-method %q, choose one of %s", j.SignMethod, strings.Join(signMethods, ", "))
	case strings.HasPrefix(j.SignMethod, "HS") && j.PrivateKeyFile == "":
		return nil, fmt.Errorf("sign-method %s needs priv-key", j.SignMethod)
	case j.PublicKeyFile == "" && j.PrivateKeyFile == "":
		return nil, errors.New("jwt needs pub-key, priv-key or both")
	}
	return j, nil
}

func (j *JWT) read(options string) error {
	var given []string
	for option := range strings.SplitSeq(options, ",") {
		name, value, ok := strings.Cut(option, "=")
		if !ok || value == "" || strings.Contains(value, "=") {
			return fmt.Errorf("%q must have the form NAME=VALUE", option)
		}
		if slices.Contains(given, name) {
			return fmt.Errorf("%s is given twice", name)
		}
		given = append(given, name)
		switch name {
		case "sign-method":
			j.SignMethod = value
		case "pub-key":
			j.PublicKeyFile = value
		case "priv-key":
			j.PrivateKeyFile = value
		case "ttl":
			ttl, err := time.ParseDuration(value)
			if err != nil || ttl <= 0 {
				return fmt.Errorf("ttl %q must be a duration of more than 0, such as \"5m\"", value)
			}
			j.TTL = ttl
		default:
			return fmt.Errorf("unknown option %q, choose from sign-method, pub-key, priv-key, ttl", name)
		}
	}
	return nil
}
