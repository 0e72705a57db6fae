// The language that was chosen last, for all tabs of all pages.
import { ref } from 'vue'

const KEY = 'language'

/** The name of a language, or '' for the first of each group. */
export const language = ref('')

/** Reads what was chosen on another page. In a browser alone, once the page is there. */
export function recallLanguage() {
  try {
    language.value ||= localStorage.getItem(KEY) ?? ''
  } catch {
    // The browser keeps nothing for this site.
  }
}

export function chooseLanguage(name) {
  language.value = name
  try {
    localStorage.setItem(KEY, name)
  } catch {
    // It holds until the page is closed.
  }
}
