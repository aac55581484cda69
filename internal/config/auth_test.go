package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
)

func TestConfig_JWT(t *testing.T) {
	for _, row := range []struct {
		token string
		want  *config.JWT // nil: simple tokens
	}{
		{"simple", nil},
		{"jwt,pub-key=a.pem,priv-key=b.pem,sign-method=RS256,ttl=1s", &config.JWT{SignMethod: "RS256",
			PublicKeyFile: "a.pem", PrivateKeyFile: "b.pem", TTL: time.Second}},
		{"jwt,sign-method=ES384,pub-key=a.pem", &config.JWT{SignMethod: "ES384", PublicKeyFile: "a.pem", TTL: 5 * time.Minute}},
		{"jwt,sign-method=HS256,priv-key=b", &config.JWT{SignMethod: "HS256", PrivateKeyFile: "b", TTL: 5 * time.Minute}},
	} {
		c := mustLoad(t, []string{"--auth-token=" + row.token})
		got, err := c.JWT()
		switch {
		case err != nil || (got == nil) != (row.want == nil):
			t.Errorf("%s: got %+v, %v, want %+v", row.token, got, err, row.want)
		case got != nil && *got != *row.want:
			t.Errorf("%s: got %+v, want %+v", row.token, *got, *row.want)
		}
	}
}

func TestConfig_JWT_faults(t *testing.T) {
	for _, row := range []struct{ token, want string }{
		{"", `invalid type "", choose simple or jwt`},
		{"oauth", `invalid type "oauth", choose simple or jwt`},
		{"JWT,sign-method=RS256,priv-key=a", `invalid type "JWT"`},
		{"simple,ttl=5m", "simple tokens have no options; --auth-token-ttl sets"},
		{"jwt", `"" must have the form NAME=VALUE`},
		{"jwt,", `"" must have the form NAME=VALUE`},
		{"jwt,pub-key=a", "jwt needs sign-method, one of RS256, "},
		{"jwt,sign-method=RS256", "jwt needs pub-key, priv-key or both"},
		{"jwt,sign-method=HS256,pub-key=a", "sign-method HS256 needs priv-key"},
		{"jwt,sign-method=none,pub-key=a", `invalid sign-method "none", choose one of RS256, `},
		{"jwt,sign-method=rs256,pub-key=a", `invalid sign-method "rs256", choose one of RS256, `},
		{"jwt,sign-method=RS256,pub-key=a,pub-key=b", "pub-key is given twice"},
		{"jwt,sign-method=RS256,pub-key", `"pub-key" must have the form NAME=VALUE`},
		{"jwt,sign-method=RS256,pub-key=", `"pub-key=" must have the form NAME=VALUE`},
		{"jwt,sign-method=RS256,pub-key=a=b", `"pub-key=a=b" must have the form NAME=VALUE`},
		{"jwt,sign-method=RS256,pubkey=a", `unknown option "pubkey", choose from sign-method, pub-key, priv-key, ttl`},
		{"jwt,sign-method=RS256,pub-key=a,ttl=5", `ttl "5" must be a duration of more than 0`},
		{"jwt,sign-method=RS256,pub-key=a,ttl=0s", `ttl "0s" must be a duration of more than 0`},
		{"jwt,sign-method=RS256,pub-key=a,ttl=-5m", `ttl "-5m" must be a duration of more than 0`},
	} {
		_, err := load(t, []string{"--auth-token=" + row.token})
		var faults config.Faults
		if !errors.As(err, &faults) || len(faults) != 1 || !strings.HasPrefix(faults[0], "--auth-token: "+row.want) {
			t.Errorf("%s: got %v, want %q", row.token, err, row.want)
		}
	}
}

func TestLoad_auth(t *testing.T) {
	c := mustLoad(t, nil)
	if c.Auth.TokenTTL != 300*time.Second || c.Auth.BcryptCost != 10 {
		t.Errorf("got %+v, want etcd's defaults", c.Auth)
	}
	c = mustLoad(t, []string{"--auth-token-ttl=9", "--bcrypt-cost=4"})
	if c.Auth.TokenTTL != 9*time.Second || c.Auth.BcryptCost != 4 || len(c.Warnings) > 0 {
		t.Errorf("got %+v, and warnings %q", c.Auth, c.Warnings)
	}
	for _, arg := range []string{"--bcrypt-cost=3", "--bcrypt-cost=32", "--auth-token-ttl=-1"} {
		if _, err := load(t, []string{arg}); err == nil {
			t.Errorf("%s: got no error", arg)
		}
	}
}
