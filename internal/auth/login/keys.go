package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/reload"
)

// methods are etcd's: all of the library's but "none".
var methods = map[string]jwt.SigningMethod{
	"RS256": jwt.SigningMethodRS256, "RS384": jwt.SigningMethodRS384, "RS512": jwt.SigningMethodRS512,
	"PS256": jwt.SigningMethodPS256, "PS384": jwt.SigningMethodPS384, "PS512": jwt.SigningMethodPS512,
	"ES256": jwt.SigningMethodES256, "ES384": jwt.SigningMethodES384, "ES512": jwt.SigningMethodES512,
	"HS256": jwt.SigningMethodHS256, "HS384": jwt.SigningMethodHS384, "HS512": jwt.SigningMethodHS512,
	"EdDSA": jwt.SigningMethodEdDSA,
}

var (
	errNoKey     = errors.New("neither a public nor a private key is given")
	errOtherKey  = errors.New("the public key is not that of the private key")
	errWrongKind = errors.New("the key is not one of the sign-method")
)

// lookInterval is how long changed files may stay unnoticed.
const lookInterval = time.Second

// pair is the keys of a member. sign is nil if it has only a public one.
type pair struct{ verify, sign any }

// keyFiles are the files that keys are in. An empty one has none.
type keyFiles struct {
	method          jwt.SigningMethod
	public, private reload.File
}

// openKeys reads the files for the first time, which must go well.
func openKeys(
	method jwt.SigningMethod, public, private string, clock env.Clock, logger *slog.Logger,
) (*reload.Source[pair], error) {
	k := keyFiles{method, reload.File{Flag: "pub-key", Path: public}, reload.File{Flag: "priv-key", Path: private}}
	return reload.Open(reload.Options{
		What: "keys of tokens", Paths: []string{public, private}, Interval: lookInterval, Clock: clock, Logger: logger,
	}, k.read)
}

func (k *keyFiles) read() (pair, error) {
	public, err := k.public.Bytes()
	if err != nil {
		return pair{}, err
	}
	private, err := k.private.Bytes()
	if err != nil {
		return pair{}, err
	}
	if _, ok := k.method.(*jwt.SigningMethodHMAC); ok {
		if len(private) == 0 {
			return pair{}, fmt.Errorf("priv-key: %w", errNoKey)
		}
		return pair{verify: private, sign: private}, nil
	}
	keys, err := parseKeys(k.method, public, private)
	if err != nil {
		return pair{}, err
	}
	return keys, tryKeys(k.method, keys)
}

func parseKeys(method jwt.SigningMethod, publicPEM, privatePEM []byte) (keys pair, err error) {
	var public interface{ Equal(crypto.PublicKey) bool }
	if len(publicPEM) > 0 {
		switch method.(type) {
		case *jwt.SigningMethodECDSA:
			public, err = parsed[*ecdsa.PublicKey](jwt.ParseECPublicKeyFromPEM(publicPEM))
		case *jwt.SigningMethodEd25519:
			public, err = parsed[ed25519.PublicKey](jwt.ParseEdPublicKeyFromPEM(publicPEM))
		default:
			public, err = parsed[*rsa.PublicKey](jwt.ParseRSAPublicKeyFromPEM(publicPEM))
		}
		if err != nil {
			return pair{}, fmt.Errorf("pub-key: %w", err)
		}
		keys.verify = public
	}
	if len(privatePEM) > 0 {
		var private crypto.Signer
		switch method.(type) {
		case *jwt.SigningMethodECDSA:
			private, err = parsed[*ecdsa.PrivateKey](jwt.ParseECPrivateKeyFromPEM(privatePEM))
		case *jwt.SigningMethodEd25519:
			private, err = parsed[ed25519.PrivateKey](jwt.ParseEdPrivateKeyFromPEM(privatePEM))
		default:
			private, err = parsed[*rsa.PrivateKey](jwt.ParseRSAPrivateKeyFromPEM(privatePEM))
		}
		switch {
		case err != nil:
			return pair{}, fmt.Errorf("priv-key: %w", err)
		case public != nil && !public.Equal(private.Public()):
			return pair{}, errOtherKey
		}
		keys = pair{verify: private.Public(), sign: private}
	}
	if keys.verify == nil {
		return pair{}, errNoKey
	}
	return keys, nil
}

// parsed returns what a parser of the library returned, as the type that it is.
func parsed[T any](key any, err error) (T, error) {
	typed, ok := key.(T)
	if err == nil && !ok {
		err = errWrongKind
	}
	return typed, err
}

// tryKeys refuses keys that the method cannot use, such as a curve of another size, before a token needs them.
func tryKeys(method jwt.SigningMethod, keys pair) error {
	if curve, ok := method.(*jwt.SigningMethodECDSA); ok {
		if key, ok := keys.verify.(*ecdsa.PublicKey); !ok || key.Curve.Params().BitSize != curve.CurveBits {
			return errWrongKind
		}
	}
	if keys.sign == nil {
		return nil
	}
	const text = "trial"
	signature, err := method.Sign(text, keys.sign)
	if err != nil {
		return fmt.Errorf("priv-key: %w", err)
	}
	return method.Verify(text, signature, keys.verify)
}
