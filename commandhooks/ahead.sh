# What a bash that was started ahead does before its script: it says so on its
# standard output, and waits for a line on descriptor 3. It then looks as if
# none of this had been.
unset BASH_ENV
printf '\n'
read -r -u 3 || exit 125 # the gate has died
exec 3<&-
unset REPLY
SECONDS=0
: "$BASH"
