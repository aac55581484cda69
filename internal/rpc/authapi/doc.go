// Package authapi is etcd's Auth service: logging in, and the management of users, roles and permissions.
//
// Passwords are hashed and compared before anything is proposed, after the caller has shown that it may ask at all. Neither a
// password nor a token reaches the log of a member or the replicated log.
//
// Invariants:
//  1. Only root changes or lists users and roles, while authentication is enabled. Others see themselves and their own roles.
//  2. Users and roles that are read here are as new as the changes that were acknowledged before the call.
//
// A Service may be used by several goroutines.
package authapi
