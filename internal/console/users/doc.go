// Package users is the page of the console that shows users, roles and permissions, says why a user may reach a key or may
// not, and changes them where the console was started to administer.
//
// The page asks etcd's Auth service as the user who looks: root sees all, others see themselves and their own roles. Whether
// a user may reach a key is decided by package auth itself, on the user and roles that the service returned.
//
// Invariants:
//  1. A password is in the body of a form and in the call to the service, and nowhere else: no URL, no log, no command line.
//  2. An action that takes something away wants the name typed, and its page says before what is lost.
//  3. At most mostRows users and roles are asked for in one look.
package users
