# bash completion of mt: what may stand at the cursor is asked of mt itself (mt __complete).
# To use it at once: eval "$(mt completion bash)"

_mt()
{
    local rest=${COMP_LINE:0:COMP_POINT} words=() trimmed word i full prefix="" value files=""

    # bash cuts words at "=", ":" and "@" as well; what stands together is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        [[ $i -gt 0 && $trimmed == "$rest" ]] || words+=("")
        if ((i < COMP_CWORD)); then
            words[-1]+=$word
            rest=${trimmed#"$word"}
        else
            words[-1]+=$trimmed
        fi
    done
    # What bash replaces begins behind the last of these, and at an "@".
    full=${words[-1]}
    [[ $full =~ ^.*[=:@] && $COMP_WORDBREAKS == *"${full:${#BASH_REMATCH[0]}-1:1}"* ]] && prefix=${BASH_REMATCH[0]%@}

    COMPREPLY=()
    while IFS= read -r value; do
        case $value in
        :files) files=yes ;;
        *)
            printf -v value %q "${value%%$'\t'*}"
            COMPREPLY+=("${value#"$prefix"}")
            ;;
        esac
    done < <("${words[0]/#\~/$HOME}" __complete --typed -- "${words[@]:1}" 2>/dev/null)

    if [[ -n $files ]]; then
        compopt -o filenames -o default 2>/dev/null
        while IFS= read -r value; do
            COMPREPLY+=("$value")
        done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=:] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _mt mt
