package login

import (
	"errors"

	"golang.org/x/crypto/bcrypt"
)

// Rejections of a client. rpc maps each to etcd's code and text.
var (
	ErrNotEnabled   = errors.New("login: authentication is not enabled")
	ErrFailed       = errors.New("login: wrong user or password")
	ErrInvalidToken = errors.New("login: the token is not valid")
	ErrBusy         = errors.New("login: too many logins at once")
	ErrVerifyOnly   = errors.New("login: this member has no key to sign tokens with, only one to check them")
	ErrNameTooLong  = errors.New("login: the name of the user is too long for a token")
	// ErrPasswordTooLong has bcrypt's text, which is what etcd answers.
	ErrPasswordTooLong = bcrypt.ErrPasswordTooLong
)

// ErrNoSecret means that the cluster was restored from a backup, and has no secret yet: see auth.State.Next.
var ErrNoSecret = errors.New("login: the cluster has no secret to sign tokens with")
