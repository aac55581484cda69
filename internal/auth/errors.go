package auth

import "errors"

// Rejections: deterministic, the same on every member. rpc maps each to etcd's code and text.
var (
	ErrRootUserNotExist     = errors.New("auth: there is no user root")
	ErrRootRoleNotExist     = errors.New("auth: the user root does not have the role root")
	ErrUserAlreadyExist     = errors.New("auth: the user exists")
	ErrUserEmpty            = errors.New("auth: no user is named")
	ErrUserNotFound         = errors.New("auth: there is no such user")
	ErrRoleAlreadyExist     = errors.New("auth: the role exists")
	ErrRoleNotFound         = errors.New("auth: there is no such role")
	ErrRoleEmpty            = errors.New("auth: no role is named")
	ErrPermissionDenied     = errors.New("auth: permission denied")
	ErrRoleNotGranted       = errors.New("auth: the user does not have the role")
	ErrPermissionNotGranted = errors.New("auth: the role does not have the permission")
	ErrPermissionNotGiven   = errors.New("auth: no permission is given")
	ErrInvalidManagement    = errors.New("auth: root may not lose its role, and a permission needs a valid range")
	ErrOldRevision          = errors.New("auth: the user was authenticated before it was added or got its password")
	ErrBadName              = errors.New("auth: names must be UTF-8 text of at most 1 KiB")
	ErrTokenInvalid         = errors.New("auth: there is no such join token")
	ErrTokenExpired         = errors.New("auth: the join token has expired")
	ErrTokenUsed            = errors.New("auth: the join token has admitted as many members as it may")
	ErrTokenExists          = errors.New("auth: the join token exists")
	ErrTooManyTokens        = errors.New("auth: there are as many join tokens as there may be")
	ErrTooLarge             = errors.New("auth: users and roles take as much as they may")
)

// ErrCorruptRow is an operating error: a row does not decode.
var ErrCorruptRow = errors.New("auth: row does not decode")
